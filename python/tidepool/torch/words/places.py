"""What takes elements to other places: parts, joins, padding, resizing."""

import torch

from ..operators import word
from ..values import BATCH, Computed, Parts, Step


@word("cat", "concat", "concatenate")
def cat(op):
    values = [value for value in op.values("tensors") if op.extents_of(value) != (0,)]
    return op.emit("Concat", [op.name(value) for value in values],
                   {"axis": op.axis(op.get("dim"), len(op.extents_of(values[0])))})


@word("stack")
def stack(op):
    values = op.values("tensors")
    extents = op.extents
    axis = op.axis(op.get("dim"), len(extents))
    one = (*extents[:axis], 1, *extents[axis + 1:])
    return op.emit("Concat", [op.reshaped(op.name(value), one) for value in values], {"axis": axis})


def parts(op, axis, sizes):
    """Views of one value, side by side. What is behind them is cut once."""
    value = op.x
    if not isinstance(value, Computed):
        op.refuse("it cuts something that is not computed from the samples, for which there is no layer")
    if axis == 0:
        op.refuse("it cuts the batch, for which there is no layer")
    cut = {}

    def part(place):
        def forward(name):
            if name not in cut:
                made = op.emit("Split", [name, op.numbers(sizes)], {"axis": axis}, outputs=len(sizes))
                cut[name] = [made] if len(sizes) == 1 else made
            return cut[name][place]
        extents = list(value.extents)
        extents[axis] = sizes[place]
        return Computed(value.storage, tuple(extents), (*value.steps, Step(forward)))
    return Parts([part(place) for place in range(len(sizes))])


@word("split", "split_with_sizes", "chunk", "tensor_split", "unsafe_chunk", "unsafe_split")
def split(op):
    extents = op.extents_of(op.x)
    axis = op.axis(op.get("dim"), len(extents))
    return parts(op, axis, [int(example.shape[axis]) for example in op.node.meta["val"]] if axis else [])


@word("unbind")
def unbind(op):
    extents = op.extents_of(op.x)
    axis = op.axis(op.get("dim"), len(extents))
    cut = parts(op, axis, [1] * (extents[axis] if axis else 0))
    without = (*extents[:axis], *extents[axis + 1:])
    return Parts([op.view(part, lambda name: op.reshaped(name, without), extents=without) for part in cut.values])


def sliced(op, axis, start, end, extents):
    def forward(name):
        return op.emit("Slice", [name, op.numbers([start]), op.numbers([end]), op.numbers([axis])])
    return op.view(op.x, forward, extents=extents)


@word("slice", "narrow")
def part(op):
    extents = op.extents_of(op.x)
    axis = op.axis(op.get("dim"), len(extents))
    start = op.get("start", 0)
    end = start + op.get("length") if op.short == "narrow" else op.get("end", 2 ** 62)
    if op.get("step", 1) != 1:
        op.refuse(f"it takes every {op.get('step')}th element; there is a layer for step 1")
    if any(not isinstance(bound, int) for bound in (start, end)):
        op.refuse("its bounds are computed while it runs")
    if axis == 0 and extents[0] == BATCH:
        if op.extents[0] == BATCH:
            return op.x
        op.refuse("it takes a part of the batch, for which there is no layer")
    extent = extents[axis]
    start, end = (min(max(bound + extent if bound < 0 else bound, 0), extent) for bound in (start, end))
    if (start, end) == (0, extent):
        return op.x
    return sliced(op, axis, start, end, op.extents)


@word("select")
def select(op):
    extents = op.extents_of(op.x)
    axis = op.axis(op.get("dim"), len(extents))
    if axis == 0:
        op.refuse("it takes a part of the batch, for which there is no layer")
    place = op.axis(op.get("index"), extents[axis])
    one = (*extents[:axis], 1, *extents[axis + 1:])
    taken = sliced(op, axis, place, place + 1, one)
    return op.view(taken, lambda name: op.reshaped(name, op.extents))


MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}


@word("pad", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d")
def pad(op):
    widths = op.get("pad" if op.has("pad") else "padding")
    mode = op.get("mode", "constant")
    if op.short.startswith(("reflection", "replication")):
        mode = "reflect" if op.short.startswith("reflection") else "replicate"
    if mode not in MODES:
        op.refuse(f"its mode is '{mode}'; there are layers for {', '.join(MODES)}")
    rank = len(op.extents_of(op.x))
    before, after = [0] * rank, [0] * rank
    for i in range(len(widths) // 2):
        before[rank - 1 - i], after[rank - 1 - i] = widths[2 * i], widths[2 * i + 1]
    inputs = [op.name(op.x), op.numbers(before + after)]
    if mode == "constant":
        inputs.append(op.name(float(op.get("value") or 0)))
    return op.emit("Pad", inputs, {"mode": MODES[mode]})


@word("upsample_nearest2d", "upsample_bilinear2d", "_upsample_nearest_exact2d")
def resize(op):
    if op.short == "_upsample_nearest_exact2d":
        op.refuse("mode='nearest-exact' has no layer; mode='nearest' has")
    scales = op.get("scale_factors")
    if scales is None and op.has("scales_h") and op.has("scales_w"):
        scales = [op.get("scales_h"), op.get("scales_w")]
    attributes = {"axes": [2, 3], "mode": "nearest", "coordinate_transformation_mode": "asymmetric",
                  "nearest_mode": "floor"}
    if op.short == "upsample_bilinear2d":
        attributes = {"axes": [2, 3], "mode": "linear",
                      "coordinate_transformation_mode": "align_corners" if op.get("align_corners") else "half_pixel"}
    size = [int(extent) for extent in op.extents[2:]]
    if scales is None:
        return op.emit("Resize", [op.name(op.x), "", "", op.numbers(size)], attributes)
    factors = op.importer.constant(torch.tensor(scales, dtype=torch.float64))
    return op.emit("Resize", [op.name(op.x), "", factors], attributes)

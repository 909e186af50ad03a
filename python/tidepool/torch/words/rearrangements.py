"""What shows the same elements with other extents, or in another order."""

from ..operators import word
from ..values import BATCH, Computed, Constant, Fill, Parameter, Parts


def as_extents(op, value):
    """Another form of a value, element by element in row-major order."""
    extents = op.extents
    if isinstance(value, Parameter):
        return op.view(value, lambda name: op.emit("Reshape", [name, op.numbers(extents)]))
    before = op.extents_of(value)
    if extents == before:
        return value
    return op.view(value, lambda name: op.reshaped(name, extents), lambda name: op.reshaped(name, before))


@word("view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as", "unsqueeze", "squeeze")
def reshape(op):
    value = op.x
    if op.short == "squeeze" and isinstance(value, Computed) and op.extents and op.extents[0] != BATCH:
        op.refuse("it takes the batch away; name the axes that it is to take: x.squeeze(2)")
    return as_extents(op, value)


def permuted(op, order):
    value = op.x
    rank = len(order)
    order = [op.axis(axis, rank) for axis in order]
    if order == list(range(rank)):
        return value
    if not isinstance(value, Parameter) and order[0] != 0:
        op.refuse("it moves the batch; there are layers that keep the batch as the first axis")
    back = [order.index(axis) for axis in range(rank)]
    return op.view(value, lambda name: op.emit("Transpose", [name], {"perm": order}),
                   lambda name: op.emit("Transpose", [name], {"perm": back}))


@word("permute")
def permute(op):
    return permuted(op, op.get("dims"))


@word("transpose", "swapaxes", "swapdims", "t", "movedim")
def transpose(op):
    rank = len(op.extents_of(op.x))
    order = list(range(rank))
    if op.short == "movedim":
        sources, targets = op.get("source"), op.get("destination")
        sources, targets = ([s] if isinstance(s, int) else s for s in (sources, targets))
        rest = [axis for axis in order if axis not in [op.axis(s, rank) for s in sources]]
        for target, source in sorted(zip((op.axis(t, rank) for t in targets), sources)):
            rest.insert(target, op.axis(source, rank))
        return permuted(op, rest)
    first, second = {"transpose": ("dim0", "dim1"), "swapaxes": ("axis0", "axis1"), "swapdims": ("dim0", "dim1"),
                     "t": ("", "")}[op.short]
    a, b = (0, 1) if op.short == "t" else (op.axis(op.get(first), rank), op.axis(op.get(second), rank))
    order[a], order[b] = order[b], order[a]
    return permuted(op, order)


@word("expand", "expand_as")
def expand(op):
    value, extents = op.x, op.extents
    if isinstance(value, (Constant, Parameter)):
        if BATCH not in extents:
            return op.view(value, lambda name: op.emit("Expand", [name, op.numbers(extents)]))
        return value  # spread by whoever reads it
    if isinstance(value, Fill):
        return Fill(extents, value.number)
    if extents == op.extents_of(value):
        return value
    return op.view(value, lambda name: op.emit("Expand", [name, op.numbers([1, *extents[1:]])]))


@word("broadcast_tensors")
def broadcast(op):
    """As losses call it, where all have the same extents already."""
    for node, example in zip(op.arguments["tensors"], op.node.meta["val"]):
        if tuple(node.meta["val"].shape) != tuple(example.shape):
            op.refuse("it spreads values over each other; give them the same extents")
    return Parts(op.values("tensors"))


@word("pixel_shuffle")
def pixel_shuffle(op):
    return op.emit("DepthToSpace", [op.name(op.x)], {"blocksize": op.get("upscale_factor"), "mode": "CRD"})


@word("pixel_unshuffle")
def pixel_unshuffle(op):
    """ONNX's SpaceToDepth has its channels in another order: by hand."""
    factor = op.get("downscale_factor")
    batch, channels, height, width = op.extents_of(op.x)
    parted = op.reshaped(op.name(op.x), (batch, channels, height // factor, factor, width // factor, factor))
    turned = op.emit("Transpose", [parted], {"perm": [0, 1, 3, 5, 2, 4]})
    return op.reshaped(turned, op.extents)


@word("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(op):
    groups, extents = op.get("groups"), op.extents_of(op.x)
    parted = op.reshaped(op.name(op.x), (extents[0], groups, extents[1] // groups, *extents[2:]))
    order = [0, 2, 1, *range(3, len(extents) + 1)]
    return op.reshaped(op.emit("Transpose", [parted], {"perm": order}), extents)

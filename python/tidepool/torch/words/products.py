"""Convolutions, matrix products and pools."""

from ..operators import word
from ..values import Parameter


def two(value, count):
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


@word("conv1d", "conv2d", "convolution")
def convolution(op):
    if op.short == "convolution" and op.get("transposed"):
        return transposed(op)
    weight = op.value("weight")
    axes = len(op.extents_of(weight)) - 2
    padding = op.get("padding")
    attributes = {"strides": two(op.get("stride"), axes), "dilations": two(op.get("dilation"), axes),
                  "group": op.get("groups"), "kernel_shape": [int(e) for e in op.extents_of(weight)[2:]]}
    if padding == "same":
        # What is left over stands behind, as in ONNX's SAME_UPPER.
        whole = [d * (k - 1) for d, k in zip(attributes["dilations"], attributes["kernel_shape"])]
        attributes["pads"] = [w // 2 for w in whole] + [w - w // 2 for w in whole]
    elif padding == "valid":
        attributes["pads"] = [0] * (2 * axes)
    else:
        attributes["pads"] = two(padding, axes) * 2
    return op.emit("Conv", op.inputs("input", "weight", "bias"), attributes)


@word("conv_transpose1d", "conv_transpose2d")
def transposed(op):
    weight = op.value("weight")
    axes = len(op.extents_of(weight)) - 2
    return op.emit("ConvTranspose", op.inputs("input", "weight", "bias"), {
        "strides": two(op.get("stride"), axes), "dilations": two(op.get("dilation"), axes), "group": op.get("groups"),
        "kernel_shape": [int(e) for e in op.extents_of(weight)[2:]], "pads": two(op.get("padding"), axes) * 2,
        "output_padding": two(op.get("output_padding"), axes)})


@word("linear")
def linear(op):
    inputs = op.inputs("input", "weight", "bias")
    if len(op.extents_of(op.x)) == 2:
        return op.emit("Gemm", inputs, {"transB": 1})
    # Over the last axis it is a convolution of one element over it as channels.
    rank, weight = len(op.extents_of(op.x)), op.extents_of(op.value("weight"))
    if rank not in (3, 4):
        op.refuse(f"its input has {rank} axes; there are layers for 2 to 4")
    positions = list(range(1, rank - 1))
    inputs[0] = op.emit("Transpose", [inputs[0]], {"perm": [0, rank - 1, *positions]})
    inputs[1] = op.emit("Reshape", [inputs[1], op.numbers([*weight, *(1 for _ in positions)])])
    made = op.emit("Conv", inputs, {"kernel_shape": [1 for _ in positions]})
    return op.emit("Transpose", [made], {"perm": [0, *(p + 1 for p in positions), 1]})


@word("matmul", "mm")
def product(op):
    second = op.value("other" if op.has("other") else "mat2")
    if not isinstance(second, Parameter) and not hasattr(second, "tensor"):
        op.refuse("it multiplies two computed matrices, for which there is no layer; one of them must be a parameter")
    return op.emit("MatMul", [op.input("self"), op.name(second)])


@word("addmm")
def sum_and_product(op):
    if op.get("beta") != 1 or op.get("alpha") != 1:
        op.refuse("its factors are not 1; use torch.nn.Linear")
    return op.emit("Gemm", op.inputs("mat1", "mat2", "self"))


def window(op, axes):
    kernel = two(op.get("kernel_size"), axes)
    return {"kernel_shape": kernel, "strides": two(op.get("stride") or kernel, axes),
            "pads": two(op.get("padding"), axes) * 2, "ceil_mode": int(bool(op.get("ceil_mode")))}


@word("max_pool1d", "max_pool2d")
def max_pool(op):
    axes = int(op.short[-2])
    attributes = window(op, axes)
    attributes["dilations"] = two(op.get("dilation"), axes)
    return op.emit("MaxPool", [op.name(op.x)], attributes)


@word("max_pool2d_with_indices")
def max_pool_with_indices(op):
    attributes = window(op, 2)
    attributes["dilations"] = two(op.get("dilation"), 2)
    return [op.emit("MaxPool", [op.name(op.x)], attributes)]


@word("avg_pool1d", "avg_pool2d")
def average_pool(op):
    if op.get("divisor_override") is not None:
        op.refuse("it divides by a number of its own; leave out divisor_override")
    attributes = window(op, int(op.short[-2]))
    attributes["count_include_pad"] = int(bool(op.get("count_include_pad")))
    return op.emit("AveragePool", [op.name(op.x)], attributes)


@word("adaptive_avg_pool1d", "adaptive_avg_pool2d")
def adaptive_average(op):
    size = two(op.get("output_size"), int(op.short[-2]))
    extents = op.extents_of(op.x)
    if len(size) == 1:
        image = op.reshaped(op.name(op.x), (*extents[:2], 1, extents[2]))
        return op.reshaped(op.emit("AdaptiveAveragePool", [image], {"output_size": [1, size[0]]}, "tidepool"),
                           (*extents[:2], size[0]))
    size = [extents[2 + i] if extent is None else extent for i, extent in enumerate(size)]
    return op.emit("AdaptiveAveragePool", [op.name(op.x)], {"output_size": size}, "tidepool")


@word("adaptive_max_pool2d", "adaptive_max_pool1d")
def adaptive_max(op):
    size = two(op.get("output_size"), int(op.short[-2]))
    if any(extent != 1 for extent in size) or len(size) != 2:
        op.refuse(f"its result has extents {size}; there is a layer for 1x1")
    return [op.emit("GlobalMaxPool", [op.name(op.x)])]

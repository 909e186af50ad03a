"""Functions of single elements."""

from ..operators import word

PLAIN = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "hardswish": "HardSwish", "mish": "Mish", "exp": "Exp",
         "sqrt": "Sqrt", "abs": "Abs", "neg": "Neg", "erf": "Erf"}


@word(*PLAIN)
def plain(op):
    return op.emit(PLAIN[op.short], [op.name(op.x)])


@word("silu")
def silu(op):
    return op.emit("Silu", [op.name(op.x)], domain="tidepool")


@word("relu6")
def relu6(op):
    return clip(op, 0.0, 6.0)


@word("hardtanh")
def hardtanh(op):
    return clip(op, op.get("min_val"), op.get("max_val"))


@word("clamp", "clamp_min", "clamp_max")
def clamp(op):
    return clip(op, op.get("min"), op.get("max"))


def clip(op, low, high):
    for bound in (low, high):
        if bound is not None and not isinstance(bound, (int, float)):
            op.refuse("its bounds are computed; there is a layer for constant ones")
    inputs = [op.name(op.x), "" if low is None else op.name(low), "" if high is None else op.name(high)]
    while inputs[-1] == "":
        inputs.pop()
    return op.emit("Clip", inputs)


@word("leaky_relu")
def leaky_relu(op):
    return op.emit("LeakyRelu", [op.name(op.x)], {"alpha": float(op.get("negative_slope"))})


@word("elu")
def elu(op):
    if op.get("scale") != 1 or op.get("input_scale") != 1:
        op.refuse("its scales are not 1; torch.nn.ELU and torch.nn.SELU are there")
    return op.emit("Elu", [op.name(op.x)], {"alpha": float(op.get("alpha"))})


@word("selu")
def selu(op):
    elu_alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return op.emit("Mul", [op.emit("Elu", [op.name(op.x)], {"alpha": elu_alpha}), op.name(scale)])


@word("celu")
def celu(op):
    return op.emit("Celu", [op.name(op.x)], {"alpha": float(op.get("alpha"))})


@word("gelu")
def gelu(op):
    return op.emit("Gelu", [op.name(op.x)], {"approximate": op.get("approximate")})


@word("hardsigmoid")
def hardsigmoid(op):
    return op.emit("HardSigmoid", [op.name(op.x)], {"alpha": 1 / 6, "beta": 0.5})


@word("softplus")
def softplus(op):
    beta, threshold = op.get("beta"), op.get("threshold")
    if threshold < 16:
        op.refuse(f"it is linear from {threshold} on; there is a layer with a threshold of 20")
    x = op.name(op.x)
    if beta == 1:
        return op.emit("Softplus", [x])
    factor = op.name(float(beta))
    return op.emit("Div", [op.emit("Softplus", [op.emit("Mul", [x, factor])]), factor])


@word("square")
def square(op):
    x = op.name(op.x)
    return op.emit("Mul", [x, x])


@word("pow")
def power(op):
    if not isinstance(op.get("exponent"), (int, float)):
        op.refuse("its exponent is computed; there is a layer for constant ones")
    return op.emit("Pow", [op.input("self"), op.name(op.get("exponent"))])


@word("softmax", "log_softmax")
def softmax(op):
    rank = len(op.extents_of(op.x))
    return op.emit("Softmax" if op.short == "softmax" else "LogSoftmax", [op.name(op.x)],
                   {"axis": op.axis(op.get("dim"), rank)})

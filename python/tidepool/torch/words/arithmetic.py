"""Sums, differences, products and quotients; means and sums over axes."""

import dataclasses

from ..operators import word
from ..values import Fill, Losses, Noise

WORDS = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div"}


def number_of(value):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, Fill) and value.number is not None:
        return value.number
    tensor = getattr(value, "tensor", None)
    if tensor is not None and not hasattr(value, "name") and tensor.numel() == 1:
        return float(tensor)
    return None


@word("add", "sub", "mul", "div", "true_divide", "multiply", "subtract", "rsub")
def arithmetic(op):
    kind = {"true_divide": "div", "multiply": "mul", "subtract": "sub", "rsub": "sub"}.get(op.short, op.short)
    a, b = op.value("self"), op.value("other")
    alpha = op.get("alpha", 1)
    if op.get("rounding_mode") is not None:
        op.refuse("it rounds, for which there is no layer")
    for special, function in ((Losses, with_losses), (Noise, with_noise)):
        if isinstance(a, special) or isinstance(b, special):
            return function(op, kind, a, b, alpha)
    if isinstance(a, Fill) and number_of(b) is not None:
        return with_fill(op, kind, a, number_of(b) * alpha if kind in ("add", "sub") else number_of(b))
    name_a, name_b = op.name(a), op.name(b)
    if alpha != 1:
        name_b = op.emit("Mul", [name_b, op.name(float(alpha))])
    if op.short == "rsub":
        name_a, name_b = name_b, name_a
    return op.emit(WORDS[kind], [name_a, name_b])


def with_fill(op, kind, fill, number):
    if fill.number is None:
        op.refuse("it reads memory that nobody has written to")
    result = {"add": lambda: fill.number + number, "sub": lambda: fill.number - number,
              "mul": lambda: fill.number * number, "div": lambda: fill.number / number}[kind]()
    return Fill(fill.extents, result)


def with_losses(op, kind, a, b, alpha):
    """Sums of losses, and losses times numbers."""
    if isinstance(a, Losses) and isinstance(b, Losses):
        if kind not in ("add", "sub") or a.reduced != b.reduced:
            op.refuse("it combines two losses; there is a weighted sum of them")
        sign = alpha if kind == "add" else -alpha
        return Losses(a.terms + [dataclasses.replace(term, weight=term.weight * sign) for term in b.terms], a.reduced)
    losses, number = (a, number_of(b)) if isinstance(a, Losses) else (b, number_of(a))
    if number is None:
        op.refuse("it computes with a loss and something else; a loss can be a weighted sum of losses")
    if kind in ("add", "sub"):
        if number != 0:  # as in sum(losses), which begins with 0
            op.refuse("it adds a number to a loss, which changes no gradient; leave it out")
        if kind == "sub" or op.short == "rsub":
            op.refuse("it subtracts a loss; weights of losses must be above 0")
        return losses
    if kind == "div" and not isinstance(a, Losses):
        op.refuse("it divides by a loss, for which there is no layer")
    factor = number if kind == "mul" else 1 / number
    return Losses([dataclasses.replace(term, weight=term.weight * factor) for term in losses.terms], losses.reduced)


def with_noise(op, kind, a, b, alpha):
    noise, other = (a, b) if isinstance(a, Noise) else (b, a)
    number = number_of(other)
    if number is None:
        if kind == "mul":
            return masked(op, op.name(other), noise, op.extents_of(other))
        if kind == "div" and noise is b and noise.keep is None:
            op.refuse("it divides by random numbers, for which there is no layer")
        op.refuse("it computes with random numbers; there are layers that drop values by them, such as "
                  "torch.nn.Dropout")
    if kind == "add" and noise.keep is None:
        shift = number * (alpha if noise is a else 1)
        return dataclasses.replace(noise, low=noise.low + shift, high=noise.high + shift)
    if kind == "mul" or (kind == "div" and noise is a):
        factor = number if kind == "mul" else 1 / number
        return dataclasses.replace(noise, factor=noise.factor * factor)
    op.refuse("it computes with random numbers; there are layers that drop values by them, such as torch.nn.Dropout")


def masked(op, x, noise, extents):
    """A value times noise of zeros and ones: dropout, or drop path."""
    if noise.keep is None:
        op.refuse("it multiplies with random numbers; there are layers that drop values, such as torch.nn.Dropout")
    shape = (1,) * (len(extents) - len(noise.extents)) + tuple(noise.extents)
    if noise.keep < 1:
        if shape == tuple(extents):
            x = op.emit("Dropout", [x], {"rate": 1 - noise.keep}, "tidepool")
        elif shape[0] == extents[0] and all(extent == 1 for extent in shape[1:]):
            x = op.emit("DropPath", [x], {"rate": 1 - noise.keep}, "tidepool")
        elif shape[:2] == tuple(extents[:2]) and all(extent == 1 for extent in shape[2:]):
            x = op.emit("DropPath", [x], {"rate": 1 - noise.keep, "per_channel": 1}, "tidepool")
        else:
            op.refuse("its mask is neither of single values nor of samples nor of their channels")
    factor = noise.factor * noise.keep
    return x if abs(factor - 1) < 1e-12 else op.emit("Mul", [x, op.name(factor)])


def reduced(op, kind):
    axes = op.get("dim")
    rank = len(op.extents_of(op.x))
    axes = list(range(rank)) if axes is None or axes == [] else [axes] if isinstance(axes, int) else axes
    axes = sorted(op.axis(axis, rank) for axis in axes)
    return op.emit(kind, [op.name(op.x), op.numbers(axes)], {"keepdims": int(bool(op.get("keepdim", False)))})


@word("mean")
def mean(op):
    if isinstance(op.x, Losses):
        return Losses(op.x.terms, True)
    return reduced(op, "ReduceMean")


@word("sum")
def total(op):
    if isinstance(op.x, Losses):
        if op.x.reduced:
            return op.x
        op.refuse("it sums a loss over the batch, whose gradient grows with the batch; use reduction='mean'")
    return reduced(op, "ReduceSum")


@word("amax")
def largest(op):
    return reduced(op, "ReduceMax")


@word("linalg_vector_norm", "norm")
def norm(op):
    order = op.get("ord", op.get("p", 2))
    if order != 2:
        op.refuse(f"it is the norm of order {order}; there is a layer for 2")
    return reduced(op, "ReduceL2")


@word("maximum", "minimum")
def extreme(op):
    return op.emit("Max" if op.short == "maximum" else "Min", [op.input("self"), op.input("other")])

"""Random numbers, and what drops values by them."""

import dataclasses

from ..operators import word
from ..values import Computed, Constant, Fill, Noise


@word("dropout")
def dropout(op):
    rate = op.get("p")
    if not op.get("train") or rate == 0:
        return op.x
    return op.emit("Dropout", [op.name(op.x)], {"rate": float(rate)}, "tidepool")


@word("feature_dropout")
def feature_dropout(op):
    rate = op.get("p")
    if not op.get("train") or rate == 0:
        return op.x
    return op.emit("DropPath", [op.name(op.x)], {"rate": float(rate), "per_channel": 1}, "tidepool")


@word("empty", "empty_like", "new_empty")
def empty(op):
    return Fill(op.extents, None)


@word("zeros", "zeros_like", "new_zeros")
def zeros(op):
    return Fill(op.extents, 0.0)


@word("ones", "ones_like", "new_ones")
def ones(op):
    return Fill(op.extents, 1.0)


@word("full", "full_like", "new_full")
def full(op):
    return Fill(op.extents, float(op.get("fill_value")))


@word("fill")
def fill(op):
    if not isinstance(op.get("value"), (int, float)):
        op.refuse("it is filled with something computed; there is a layer for a constant number")
    return Fill(op.extents, float(op.get("value")))


@word("rand", "rand_like")
def uniform(op):
    return Noise(op.extents)


@word("uniform")
def uniform_between(op):
    if isinstance(op.x, Computed):
        op.refuse("it replaces computed values by random ones; make new ones with torch.rand_like")
    return Noise(op.extents, float(op.get("from")), float(op.get("to")))


@word("bernoulli")
def bernoulli(op):
    keep = op.get("p")
    if keep is None:
        source = op.x
        keep = source.number if isinstance(source, Fill) else (
            float(source.tensor) if isinstance(source, Constant) and source.tensor.numel() == 1 else None)
    if not isinstance(keep, (int, float)) or isinstance(op.x, Computed):
        op.refuse("its probabilities are not one constant number")
    return Noise(op.extents, keep=float(keep))


@word("floor")
def floor(op):
    """Of numbers between c and 1 + c: 1 with the probability c."""
    noise = op.x
    if not isinstance(noise, Noise) or noise.keep is not None or noise.factor != 1 or not (
            0 <= noise.low < 1 and 1 <= noise.high <= 2):
        op.refuse("it rounds, for which there is no layer")
    return Noise(noise.extents, keep=(noise.high - 1) / (noise.high - noise.low))


@word("lt", "le", "gt", "ge")
def compare(op):
    noise, limit = op.x, op.get("other")
    if not isinstance(noise, Noise) or noise.keep is not None or noise.factor != 1 or not isinstance(
            limit, (int, float)):
        op.refuse("it compares computed values, for which there is no layer")
    below = min(max((limit - noise.low) / (noise.high - noise.low), 0.0), 1.0)
    return Noise(noise.extents, keep=below if op.short in ("lt", "le") else 1 - below)


@word("to", "_to_copy", "type_as", "float", "clone", "contiguous", "alias", "detach", "lift_fresh_copy")
def same(op):
    """The same value. Where a copy is made, later changes of the one are not seen by the other."""
    value = op.x
    example = op.node.meta["val"]
    if isinstance(value, (Fill, Noise)):
        return dataclasses.replace(value)
    if not example.dtype.is_floating_point and isinstance(value, Computed):
        op.refuse(f"its result is of type {example.dtype}; there are layers for floats")
    if op.short == "detach" and not isinstance(value, Constant):
        op.refuse("it stops gradients, for which there is no layer; set requires_grad of the parameters instead")
    if op.short == "clone" and isinstance(value, Computed):
        return op.name(value)
    return value

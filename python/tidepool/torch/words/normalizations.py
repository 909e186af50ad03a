"""Batch, group and instance normalization."""

import torch

from ..operators import word
from ..values import Constant


def array_or(op, name, channels, number):
    """The module's array, or where it has none one of its own that stays as it is."""
    if op.has(name):
        return op.input(name)
    return op.name(Constant(torch.full((channels,), float(number))))


@word("batch_norm")
def batch_norm(op):
    channels = op.extents_of(op.x)[1]
    training = op.get("training")
    if not op.has("running_mean") and training:
        op.importer.graph.notes.append(
            f"{op.importer.where_of(op.node)}: it keeps no running statistics; they are kept here, for evaluation")
    names = [array_or(op, name, channels, number)
             for name, number in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1))]
    return op.emit("BatchNormalization", [op.name(op.x), *names], {
        "epsilon": float(op.get("eps")), "momentum": 1 - float(op.get("momentum")), "training_mode": int(training)})


@word("group_norm")
def group_norm(op):
    channels = op.extents_of(op.x)[1]
    return op.emit("GroupNormalization", [op.name(op.x), array_or(op, "weight", channels, 1),
                                          array_or(op, "bias", channels, 0)],
                   {"epsilon": float(op.get("eps")), "num_groups": op.get("num_groups")})


@word("instance_norm")
def instance_norm(op):
    channels = op.extents_of(op.x)[1]
    if not op.get("use_input_stats"):
        op.refuse("it normalizes with running statistics; leave out track_running_stats")
    return op.emit("InstanceNormalization", [op.name(op.x), array_or(op, "weight", channels, 1),
                                             array_or(op, "bias", channels, 0)], {"epsilon": float(op.get("eps"))})


@word("layer_norm")
def layer_norm(op):
    """Over everything behind the batch it is group normalization with one group, where it has no weights."""
    extents, over = op.extents_of(op.x), op.get("normalized_shape")
    if len(over) == len(extents) - 1 and not op.has("weight") and not op.has("bias"):
        return op.emit("GroupNormalization", [op.name(op.x), array_or(op, "weight", extents[1], 1),
                                              array_or(op, "bias", extents[1], 0)],
                       {"epsilon": float(op.get("eps")), "num_groups": 1})
    op.importer.refuse(op.node, op.short)

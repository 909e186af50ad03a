"""Losses. They stay apart from the graph until it is known with which weights they are summed."""

from ..operators import word
from ..values import BATCH, Computed, Constant, Losses, Target, Term

NONE, MEAN, SUM = 0, 1, 2


def term(op, kind, attributes, is_classes=False):
    """A loss of a computed value and a target."""
    x, target = op.value("self"), op.value("target")
    if isinstance(target, Computed) and isinstance(x, Target):
        x, target = target, x
    if not isinstance(x, Computed):
        op.refuse("what it compares does not depend on the samples")
    if isinstance(target, Constant):
        op.refuse("its targets are the same for all samples; give them as targets of the loss")
    if not isinstance(target, Target):
        op.refuse("its targets are computed from the samples; give them as targets of the loss")
    if op.has("weight"):
        op.refuse("it weighs its classes or elements, for which there is no layer; leave out weight")
    reduction = op.get("reduction")
    if reduction == SUM:
        op.refuse("it sums over the batch, so that its gradient grows with the batch; use reduction='mean'")
    classes = (op.extents_of(x)[1], op.get("ignore_index")) if is_classes else None
    made = Term(kind, op.name(x), target, attributes, op.node, classes=classes)
    return Losses([made], reduction == MEAN)


def class_attributes(op, is_mean):
    # A mean over what is not ignored; whoever takes the mean by himself counts all.
    return {"ignore_index": op.get("ignore_index")} if is_mean else {}


@word("cross_entropy_loss")
def cross_entropy(op):
    target = op.value("target")
    soft = isinstance(target, Target) and target.node.meta["val"].dtype.is_floating_point
    if soft:
        op.importer.graph.has_soft_labels = True
        attributes = {}
        if op.get("reduction") == NONE:
            op.refuse("it leaves its mean to others; use reduction='mean'")
    else:
        attributes = class_attributes(op, op.get("reduction") == MEAN)
        op.importer.graph.has_hard_labels = True
    if op.get("label_smoothing"):
        attributes["label_smoothing"] = float(op.get("label_smoothing"))
    return term(op, "CrossEntropy", attributes, not soft)


@word("nll_loss", "nll_loss_nd", "nll_loss2d")
def negative_log_likelihood(op):
    x = op.value("self")
    made = op.importer.maker_of(op.name(x)) if isinstance(x, Computed) else None
    if made is None or made["op"] != "LogSoftmax" or made["attributes"]["axis"] != 1:
        op.refuse("it is there for the result of log_softmax over the channels alone; cross_entropy is both in one")
    op.importer.graph.has_hard_labels = True
    return term(op, "CrossEntropy", class_attributes(op, op.get("reduction") == MEAN), True)


@word("binary_cross_entropy_with_logits")
def binary_cross_entropy(op):
    if op.has("pos_weight"):
        op.refuse("it weighs positive targets, for which there is no layer; leave out pos_weight")
    return alike(op, "BinaryCrossEntropyWithLogits")


@word("mse_loss")
def mean_squared_error(op):
    return alike(op, "MeanSquaredError")


def alike(op, kind):
    result = term(op, kind, {})
    for value in (op.value("self"), op.value("target")):
        extents = op.extents_of(value) if not isinstance(value, Target) else value.extents
        if len(extents) == 1 and extents[0] == BATCH:
            op.refuse("it compares one number for each sample without an axis for it; give both a second axis of 1")
    return result

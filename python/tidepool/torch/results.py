"""What a traced module gives: outputs, or a loss as a weighted sum of words."""

import torch

from .. import Error
from .values import Computed, Losses


class Results:
    """A part of the Importer."""

    outputs = ()

    def output(self, node):
        leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(node.args[0]) if isinstance(leaf, torch.fx.Node)]
        if self.has_loss():
            return self.output_loss(leaves)
        self.outputs = []
        for leaf in leaves:
            value = self.value_of(leaf)
            if not isinstance(value, Computed):
                raise Error("an output of the module does not depend on its input")
            self.outputs.append(self.read(value))

    def has_loss(self):
        return hasattr(self.wrapper, "loss")

    def output_loss(self, leaves):
        if len(leaves) != 1:
            raise Error(f"the loss gives {len(leaves)} values; it must give one")
        value = self.value_of(leaves[0])
        if not isinstance(value, Losses) or not value.reduced:
            raise Error("the loss is none of those there are: a weighted sum of cross_entropy, nll_loss of a "
                        "log_softmax, binary_cross_entropy_with_logits and mse_loss, each a mean; docs/pytorch.md")
        for number, term in enumerate(value.terms):
            self.current = term.node
            self.short = term.op
            if not term.weight > 0:
                raise Error(f"{self.where()}: its weight in the sum is {term.weight}; it must be above 0")
            name = self.new_name(f"target{number}" if len(value.terms) > 1 else "target")
            example = term.target.node.meta["val"]
            kind = "float32" if example.dtype.is_floating_point else "int64"
            self.inputs.append({"name": name, "type": kind,
                                "shape": [-1, *(int(e) for e in example.shape[1:])]})
            self.graph.targets.append((name, term.target.node))
            if term.classes is not None:
                self.graph.classes[name] = term.classes
            attributes = dict(term.attributes)
            if term.weight != 1:
                attributes["weight"] = float(term.weight)
            self.emit(term.op, [term.x, name], attributes, "tidepool")
        self.outputs = [term.x for term in value.terms]

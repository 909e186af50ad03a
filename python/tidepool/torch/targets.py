"""What the host computes of a batch's targets before a step: what a loss does with them before it compares."""

import torch

from .. import Error


class HostTargets:
    """Runs the part of a program that depends on its targets alone."""

    def __init__(self, program, wanted, classes=None):
        self.program, self.wanted = program, wanted  # (name, node)
        self.classes = classes or {}  # by name, of targets that are classes: how many, and the label that is left out
        users = [spec for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
        self.places = {spec.arg.name: i for i, spec in enumerate(users)}
        self.arrays = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs
                       if spec.kind.name != "USER_INPUT"}
        needed, open_nodes = set(), [node for _, node in wanted]
        while open_nodes:
            node = open_nodes.pop()
            if node in needed:
                continue
            needed.add(node)
            # Sizes are known from the batch; what they are computed from is not looked at.
            if isinstance(node.meta.get("val"), (torch.Tensor, list, tuple)):
                open_nodes.extend(node.all_input_nodes)
        self.nodes = [node for node in program.graph.nodes if node in needed]

    def __call__(self, sample_count, targets):
        """By input of the graph, as torch tensors."""
        if len(targets) != len(self.places) - 1:
            raise Error(f"the example had {len(self.places) - 1} targets, and this batch has {len(targets)}; give as "
                        f"many, as tensors")
        values = {}
        with torch.no_grad():
            for node in self.nodes:
                values[node] = self.value_of(node, values, sample_count, targets)
        made = {name: values[node] for name, node in self.wanted}
        for name, (count, ignored) in self.classes.items():
            check_classes(made[name], count, ignored)
            if ignored is not None:  # a session knows none of a loss's own
                made[name] = made[name].masked_fill(made[name] == ignored, -1)
        return made

    def value_of(self, node, values, sample_count, targets):
        example = node.meta.get("val")
        if isinstance(example, torch.SymInt):
            return int(example.node.expr.subs({symbol: sample_count for symbol in example.node.expr.free_symbols}))
        if isinstance(example, int) and not isinstance(example, bool):
            return example
        if node.op == "placeholder":
            if node.name in self.places:
                return targets[self.places[node.name] - 1]
            target = self.arrays[node.name]
            state = self.program.state_dict
            return (state[target] if target in state else self.program.constants[target]).detach().cpu()
        take = lambda argument: torch.fx.node.map_arg(argument, lambda n: values[n])  # noqa: E731
        kwargs = dict(take(node.kwargs))
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        try:
            return node.target(*take(node.args), **kwargs)
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            said = next(iter(str(error).splitlines()), repr(error)).strip()
            raise Error(f"what the loss does with its targets cannot be done with these, in {node.target}: "
                        f"{said}") from error


def check_classes(labels, count, ignored):
    """As PyTorch does: each label is a class, or the one that the loss leaves out."""
    if labels.numel() == 0 or labels.dtype.is_floating_point or labels.dtype.is_complex:
        return  # the session says what it is about them
    low, high = (int(end) for end in torch.aminmax(labels))
    if 0 <= low and high < count:
        return
    wrong = labels[(labels < 0) | (labels >= count)]
    wrong = wrong[wrong != ignored] if ignored is not None else wrong
    if wrong.numel() > 0:
        left_out = f", or {ignored}, which is left out" if ignored is not None else ""
        raise Error(f"a target is {int(wrong[0])}, and the module has {count} classes; targets are from 0 to "
                    f"{count - 1}{left_out}")

"""What the host computes of a batch's targets before a step: what a loss does with them before it compares."""

import torch


class HostTargets:
    """Runs the part of a program that depends on its targets alone."""

    def __init__(self, program, wanted):
        self.program, self.wanted = program, wanted  # (name, node)
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
        values = {}
        with torch.no_grad():
            for node in self.nodes:
                values[node] = self.value_of(node, values, sample_count, targets)
        return {name: values[node] for name, node in self.wanted}

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
        return node.target(*take(node.args), **kwargs)

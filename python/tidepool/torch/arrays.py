"""The module's own arrays while it becomes a graph, and what is computed of them at once."""

import torch

from .. import Error
from .traced import without_wrapper
from .values import Cell, Constant, Parts


class Arrays:
    """A part of the Importer."""

    read_buffers = None  # by name: the module's, and the copy that operators write to

    def originals(self):
        if self.read_buffers is None:
            self.read_buffers = {}
            self.tensors = dict(self.wrapper.named_parameters(remove_duplicate=False))
            self.tensors.update(self.wrapper.named_buffers(remove_duplicate=False))
            self.first_names = {}
            for name, tensor in self.tensors.items():
                self.first_names.setdefault(id(tensor), name)
        return self.tensors

    def array_name(self, target, tensor):
        """The name of the module's own; of tied ones the first."""
        return without_wrapper(self.first_names.get(id(tensor), target))

    RANDOM = {"rand", "randn", "rand_like", "randn_like", "bernoulli", "normal", "uniform", "empty", "empty_like",
              "new_empty", "empty_strided", "randint", "dropout", "feature_dropout"}

    def is_fixed(self, node):
        """Whether its result is known while importing."""
        if self.short in self.RANDOM:
            return False
        examples = node.meta["val"] if isinstance(node.meta["val"], (list, tuple)) else [node.meta["val"]]
        for example in examples:
            for extent in getattr(example, "shape", ()):
                if isinstance(extent, torch.SymInt):
                    return False
        return all(not isinstance(n.meta.get("val"), torch.SymInt) for n in node.all_input_nodes)

    def computed_now(self, node, values, in_place):
        take = lambda n: self.cells[n].value.tensor if n in self.cells else n.meta["val"]  # noqa: E731
        args = torch.fx.node.map_arg(node.args, take)
        kwargs = dict(torch.fx.node.map_arg(node.kwargs, take))
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        with torch.no_grad():
            result = node.target(*args, **kwargs)
        sources = frozenset().union(*(value.sources for value in values)) if values else frozenset()
        if in_place:
            return self.cells[node.args[0]]
        if isinstance(result, (list, tuple)):
            return Cell(Parts([Constant(part, None, sources) for part in result]))
        return Cell(Constant(result, None, sources))

    def constant_name(self, value):
        if value.array is not None:
            if value.array not in self.constants:
                self.constants[value.array] = value.tensor.detach().contiguous().numpy()
                self.names.add(value.array)
                self.frozen.add(value.array)
            return value.array
        for source in value.sources:
            original, _ = self.read_buffers[source]
            self.graph.folded[source] = original.detach().cpu().clone()
        value.array = self.constant(value.tensor)
        return value.array

    def count_buffers(self):
        """Which buffers a step changes: only counters may, and statistics by their batch norms."""
        for name, (original, now) in (self.read_buffers or {}).items():
            before = original.detach().cpu()
            if torch.equal(before, now):
                continue
            if before.dtype.is_floating_point:
                raise Error(f"buffer '{name}' is changed by each step; only running statistics of batch norms, and "
                            f"counters, can be")
            self.graph.counters[name] = now - before

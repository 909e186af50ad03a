"""From a traced module to a graph of the words that `tidepool.import_graph` understands."""

import operator as python_operator

import torch

from .. import Error
from .operators import HINTS, TABLE, Operator
from .traced import layer_name, place_of, without_wrapper
from .values import BATCH, Cell, Computed, Constant, Losses, Parameter, Parts, Storage, Target

# With channels' own numbers in group normalization.
OPSET = 21


class Broken:
    """Something without a layer. It matters only where a result needs it."""

    def __init__(self, error):
        self.error = error


class Graph:
    """What importing one traced module answers."""

    def __init__(self):
        self.words = {}  # the graph, as `tidepool.import_graph` takes it
        self.counters = {}  # buffers of whole numbers, and what a step adds to them
        self.folded = {}  # arrays of the module that were computed with, as they were then
        self.notes = []
        self.targets = []  # (name, node) of what the host computes for each loss
        self.program = None

    def host_targets(self, sample_count, targets):
        """The losses' targets of one batch, by input name, as torch tensors."""
        return HostTargets(self.program, self.targets)(sample_count, targets)


class HostTargets:
    """Runs the part of a program that depends on its targets alone."""

    def __init__(self, program, wanted):
        self.wanted = wanted
        self.constants = {}
        needed, open_nodes = set(), [node for _, node in wanted]
        while open_nodes:
            node = open_nodes.pop()
            if node in needed:
                continue
            needed.add(node)
            # Sizes are known from the batch; what they are computed from is not looked at.
            if isinstance(node.meta.get("val"), torch.Tensor) or isinstance(node.meta.get("val"), (list, tuple)):
                open_nodes.extend(node.all_input_nodes)
        users = [spec for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
        self.places = {spec.arg.name: i for i, spec in enumerate(users)}
        self.arrays = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs
                       if spec.kind.name != "USER_INPUT"}
        self.program = program
        self.nodes = [node for node in program.graph.nodes if node in needed]

    def __call__(self, sample_count, targets):
        values = {}
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
            return self.program.state_dict[target] if target in self.program.state_dict else self.program.constants[target]
        take = lambda argument: torch.fx.node.map_arg(argument, lambda n: values[n])  # noqa: E731
        return node.target(*take(node.args), **take(node.kwargs))


class Importer:
    def __init__(self, program, wrapper, name):
        self.program = program
        self.wrapper = wrapper
        self.cells = {}
        self.nodes, self.constants, self.frozen = [], {}, set()
        self.names = set()
        self.graph = Graph()
        self.graph.program = program
        self.name = name
        self.batch = None  # SymInt or int
        self.inputs = []
        self.current = None

    # Names and nodes

    def new_name(self, wanted):
        name, n = wanted, 2
        while name in self.names:
            name, n = f"{wanted}_{n}", n + 1
        self.names.add(name)
        return name

    def emit(self, op, inputs, attributes=None, domain="", outputs=1):
        """Adds a word; its output's name, or their names."""
        node = self.current
        made = [self.new_name(node.name) for _ in range(outputs)]
        self.nodes.append({
            "op": op, "domain": domain, "name": layer_name(node, self.short), "inputs": list(inputs), "outputs": made,
            "attributes": attributes or {}, "place": place_of(node)})
        return made[0] if outputs == 1 else made

    def constant(self, tensor, wanted="constant"):
        name = self.new_name(wanted)
        self.constants[name] = tensor.detach().cpu().contiguous().numpy()
        self.frozen.add(name)
        return name

    # Shapes

    def is_batch(self, extent):
        if isinstance(extent, torch.SymInt):
            return isinstance(self.batch, torch.SymInt) and extent.node.expr == self.batch.node.expr
        return False

    def extents(self, value):
        """With BATCH for the batch."""
        result = []
        for axis, extent in enumerate(value.shape):
            if self.is_batch(extent) or (axis == 0 and isinstance(self.batch, int) and extent == self.batch):
                result.append(BATCH)
            elif isinstance(extent, torch.SymInt):
                raise Error(f"{self.where()}: an extent of its result is {extent.node.expr}; there are layers that keep "
                            f"the batch as the first axis, and whose other extents do not depend on it")
            else:
                result.append(int(extent))
        return tuple(result)

    # Values

    def read(self, value):
        """The name of a computed value as it is now."""
        if value.seen is None or value.seen[0] != value.storage.version:
            name = value.storage.name
            for step in value.steps:
                name = step.forward(name)
            value.seen = (value.storage.version, name)
        return value.seen[1]

    def write(self, value, name):
        """Gives the storage behind a view another value, so that all its views see it."""
        for step in reversed(value.steps):
            if step.backward is None:
                raise Error(f"{self.where()}: it writes into a part of a value, for which there is no layer; compute a "
                            f"new one, with torch.cat for instance")
            name = step.backward(name)
        value.storage.name = name
        value.storage.version += 1

    def where(self):
        place = place_of(self.current)
        target = self.current.target
        word = str(target) if not callable(target) or hasattr(target, "_schema") else getattr(target, "__name__", str(target))
        return f"{word} ({place})" if place else f"{word} '{self.current.name}'"

    def value_of(self, node):
        value = self.cells[node].value
        if isinstance(value, Broken):
            raise value.error
        return value

    # The walk

    def run(self):
        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        for node in self.program.graph.nodes:
            self.current = node
            if node.op == "placeholder":
                self.placeholder(node, specs[node.name])
            elif node.op == "call_function":
                self.call(node)
            elif node.op == "output":
                self.output(node)
        self.count_buffers()
        self.graph.words = {
            "name": self.name, "opset": OPSET, "inputs": self.inputs, "outputs": self.outputs, "nodes": self.nodes,
            "constants": self.constants, "frozen": sorted(self.frozen)}
        return self.graph

    def placeholder(self, node, spec):
        kind, example = spec.kind.name, node.meta.get("val")
        if kind == "USER_INPUT":
            return self.user_input(node, example)
        if kind == "PARAMETER":
            tensor = self.originals()[spec.target]
            name = self.array_name(spec.target, tensor)
            self.constants.setdefault(name, tensor.detach().cpu().contiguous().numpy())
            self.names.add(name)
            if tensor.requires_grad:
                self.cells[node] = Cell(Parameter(name, name, tensor))
                return
            self.frozen.add(name)
        elif kind in ("BUFFER", "CONSTANT_TENSOR"):
            originals = self.originals()
            tensor = originals[spec.target] if spec.target in originals else self.program.constants[spec.target]
            name = self.array_name(spec.target, tensor)
        else:
            raise Error(f"the traced module has an input of kind {kind.lower()}; give tensors only")
        # A copy, which operators may write to.
        self.cells[node] = Cell(Constant(tensor.detach().cpu().clone(), name, frozenset([name])))
        self.read_buffers[name] = (tensor, self.cells[node].value.tensor)

    read_buffers = None

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

    def user_input(self, node, example):
        if not isinstance(example, torch.Tensor):
            raise Error(f"input '{node.name}' of the traced module is no tensor; give tensors only")
        if self.batch is None:
            self.batch = example.shape[0] if example.dim() > 0 else None
            if self.batch is None:
                raise Error("the example is a single number; give a batch of samples")
            extents = self.extents(example)
            if not example.dtype.is_floating_point:
                raise Error(f"the example's type is {example.dtype}; there are layers for floats: convert it before")
            shape = [-1 if isinstance(self.batch, torch.SymInt) else self.batch, *extents[1:]]
            self.inputs.append({"name": node.name, "type": "float32", "shape": shape})
            self.names.add(node.name)
            self.sample = node.name
            self.cells[node] = Cell(Computed(Storage(node.name), extents))
            if isinstance(self.batch, int):
                self.graph.notes.append(f"the module's shapes are made for batches of {self.batch} samples only")
            return
        self.cells[node] = Cell(Target(node, tuple(example.shape)))

    def call(self, node):
        example = node.meta.get("val")
        if node.target is python_operator.getitem:
            self.cells[node] = self.item(node)
            return
        if example is None or isinstance(example, (torch.SymInt, torch.SymBool, torch.SymFloat, bool, int, float)):
            if not hasattr(node.target, "_schema") or not node.target._schema.name.startswith("aten::"):
                return  # sizes, and what is said of them
            if example is None or not isinstance(example, torch.Tensor):
                return
        try:
            self.cells[node] = self.translate(node)
        except Error as error:
            self.cells[node] = Cell(Broken(error))
            self.spoil(node, error)

    def spoil(self, node, error):
        """What it would have written to has no value, either."""
        schema = getattr(node.target, "_schema", None)
        if schema is None or not schema.is_mutable or not node.args or not isinstance(node.args[0], torch.fx.Node):
            return
        cell = self.cells.get(node.args[0])
        if cell is not None:
            cell.value = Broken(error)

    def item(self, node):
        source, index = node.args
        value = self.cells[source].value if source in self.cells else None
        if isinstance(value, Parts):
            return Cell(value.values[index])
        if isinstance(value, Broken):
            return Cell(value)
        if isinstance(value, Target):
            return Cell(Target(node, tuple(node.meta["val"].shape)))
        return Cell(Broken(Error(f"{self.where()}: it takes one of several results of an operator without a layer")))

    def translate(self, node):
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            return self.refuse(node, getattr(node.target, "__name__", str(node.target)))
        self.short = schema.name.split("::")[-1].rstrip("_")
        values = [self.value_of(n) for n in node.all_input_nodes if n in self.cells]
        in_place = schema.is_mutable and schema.name.endswith("_")
        if values and any(isinstance(v, Target) for v in values) and all(
                isinstance(v, (Target, Constant)) for v in values):
            if in_place:
                raise Error(f"{self.where()}: it changes targets in place; leave out the underscore")
            return Cell(Target(node, tuple(getattr(node.meta["val"], "shape", ()))))
        if all(isinstance(v, Constant) for v in values) and self.is_fixed(node):
            return self.computed_now(node, values, in_place)
        function = TABLE.get(self.short)
        if function is None:
            return self.refuse(node, self.short)
        result = self.as_value(function(Operator(self, node, schema)), node)
        if not in_place:
            return Cell(result)
        return self.replace(node, result)

    def refuse(self, node, word):
        hint = HINTS.get(word, "write it with layers that there are (docs/pytorch.md lists them)")
        raise Error(f"{self.where()}: there is no layer for it; {hint}")

    def as_value(self, result, node):
        """Names are values computed from the samples."""
        if isinstance(result, str):
            return Computed(Storage(result), self.extents(node.meta["val"]))
        if isinstance(result, list):
            examples = node.meta["val"]
            return Parts([Computed(Storage(part), self.extents(example)) if isinstance(part, str) else part
                          for part, example in zip(result, examples)])
        return result

    def replace(self, node, result):
        cell = self.cells[node.args[0]]
        if isinstance(cell.value, Computed):
            if not isinstance(result, Computed):
                raise Error(f"{self.where()}: it gives computed values one that is not computed")
            name = self.read(result)
            if result.extents != cell.value.extents:
                raise Error(f"{self.where()}: its result has other extents than what it is written to")
            if result.storage is not cell.value.storage:
                self.write(cell.value, name)
        elif isinstance(cell.value, Parameter):
            raise Error(f"{self.where()}: it changes the trained parameter '{cell.value.array}' in place; only the "
                        f"optimizer can")
        elif isinstance(cell.value, Target):
            raise Error(f"{self.where()}: it writes to targets")
        else:
            cell.value = result
        return cell

    # Constants

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

    # What comes out

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
            attributes = dict(term.attributes)
            if term.weight != 1:
                attributes["weight"] = float(term.weight)
            self.emit(term.op, [term.x, name], attributes, "tidepool")
        self.outputs = [term.x for term in value.terms]


def graph_of(program, wrapper, name="model"):
    """The graph of a program that `traced.export` made of this wrapper. Throws where there is no layer for it."""
    return Importer(program, wrapper, name).run()

"""From a traced module to a graph of the words that `tidepool.import_graph` understands."""

import operator as python_operator

import torch

from .. import Error
from .operators import HINTS, TABLE, Operator
from .arrays import Arrays
from .results import Results
from .traced import layer_name, place_of
from .values import BATCH, Broken, Cell, Computed, Constant, Parameter, Parts, Storage, Target

# With channels' own numbers in group normalization.
OPSET = 21


class Graph:
    """What importing one traced module answers."""

    def __init__(self):
        self.words = {}  # the graph, as `tidepool.import_graph` takes it
        self.counters = {}  # buffers of whole numbers, and what a step adds to them
        self.folded = {}  # arrays of the module that were computed with, as they were then
        self.notes = []
        self.has_soft_labels = self.has_hard_labels = False  # cross-entropies of probabilities, of classes
        self.targets = []  # (name, node) of what the host computes for each loss
        self.classes = {}  # by such a name, where it is classes: how many there are, and the label that is left out
        self.program = None


class Importer(Arrays, Results):
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
                if name not in step.shown:
                    step.shown[name] = step.forward(name)
                name = step.shown[name]
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

    def maker_of(self, name):
        """The word that makes a value."""
        return next((node for node in reversed(self.nodes) if name in node["outputs"]), None)

    def where(self):
        return self.where_of(self.current)

    def where_of(self, node):
        place = place_of(node)
        target = node.target
        word = str(target) if not callable(target) or hasattr(target, "_schema") else getattr(target, "__name__", str(target))
        return f"{word} ({place})" if place else f"{word} '{node.name}'"

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
            "constants": self.constants, "frozen": sorted(self.frozen), "training": True}
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
            if index < len(value.values):
                return Cell(value.values[index])
            return Cell(Broken(Error(f"{self.where_of(source)}: its result {index + 1} is read, for which there is no layer")))
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


def graph_of(program, wrapper, name="model"):
    """The graph of a program that `traced.export` made of this wrapper. Throws where there is no layer for it."""
    return Importer(program, wrapper, name).run()

"""From a module, an example and a loss to a network."""

import contextlib

import torch

from .. import Error, from_graph
from .graph import graph_of
from .traced import Forward, WithLoss, export


class Traced:
    """A network with what is known of the module that it was made from."""

    def __init__(self, module, network, graph, wrapper):
        self.module, self.network, self.graph = module, network, graph
        self.notes = [*graph.notes, *network.notes]
        self.arrays = named_tensors(module)
        self.trained = {row["array"]: self.arrays[row["array"]] for row in network.weight_names
                        if not row["statistic"] and row["array"] in self.arrays
                        and isinstance(self.arrays[row["array"]], torch.nn.Parameter)}
        self.takes_tuple = getattr(wrapper, "targets", None) == "tuple"


def named_tensors(module):
    """Parameters and buffers by their names; tied ones by each of theirs."""
    return {**dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False))}


def parts_of(example):
    """Samples and targets of an example, or of a loader's first batch."""
    if isinstance(example, torch.utils.data.DataLoader):
        example = next(iter(example))
    if isinstance(example, torch.Tensor):
        return example, None
    if not isinstance(example, (tuple, list)) or len(example) not in (1, 2) or not isinstance(example[0], torch.Tensor):
        raise Error("the example must be what a loader gives: samples, or (samples, targets), as tensors")
    if len(example) == 1:
        return example[0], None
    targets = example[1]
    if isinstance(targets, (tuple, list)):
        targets = tuple(targets)
    for target in targets if isinstance(targets, tuple) else (targets,):
        if not isinstance(target, torch.Tensor):
            raise Error(f"a target of the example is a {type(target).__name__}; give tensors, one or a tuple of them")
    return example[0], targets


def several(tensor):
    """A single sample would be taken for a fixed extent; twice the same one is not."""
    return torch.cat([tensor, tensor]) if tensor.dim() > 0 and tensor.shape[0] == 1 else tensor


@contextlib.contextmanager
def training_mode(module):
    """As it is where it is in training mode; else switched over meanwhile."""
    modes = [(part, part.training) for part in module.modules()]
    if not module.training:
        module.train()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def trace(module, example, loss=None, *, forward=None, fallback_loss=""):
    """The network of a module in training mode. Without a loss the module has to return it; with `forward` it is the
    module alone, to which tidepool puts `fallback_loss`."""
    if not isinstance(module, torch.nn.Module):
        raise Error(f"a {type(module).__name__} is not a torch.nn.Module; give the module itself")
    if hasattr(module, "_orig_mod"):
        module = module._orig_mod  # of torch.compile
    samples, targets = parts_of(example)
    place = next((tensor.device for tensor in module.parameters()), torch.device("cpu"))
    inputs = [several(samples.detach().to(place))]
    if forward or targets is None and loss is None and fallback_loss:
        wrapper = Forward(module)
    else:
        if targets is None:
            raise Error("the loss needs targets: give the example as (samples, targets)")
        wrapper = WithLoss(module, loss, "tuple" if isinstance(targets, tuple) else "one")
        inputs += [several(target.to(place)) for target in (targets if isinstance(targets, tuple) else (targets,))]
        fallback_loss = ""
    wrapper.training = True
    with training_mode(module):
        program = export(wrapper, inputs)
    graph = graph_of(program, wrapper, type(module).__name__)
    network = from_graph(graph.words, loss=fallback_loss)
    if graph.has_soft_labels:
        if graph.has_hard_labels:
            raise Error("one loss compares with classes and another with probabilities; give both the same")
        network = network.adapt(soft_labels=True)
    return Traced(module, network, graph, wrapper)

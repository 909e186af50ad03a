"""From a module, an example and a loss to a network."""

import collections.abc
import warnings

import torch

from .. import Error, from_graph
from ..checks import a
from .graph import graph_of
from .traced import Forward, WithLoss, export


EVALUATED = ("the module is in evaluation mode: its batch norms keep their statistics, and nothing is dropped; call "
             "module.train() before it is compiled to train as usual")


class Traced:
    """A network with what is known of the module that it was made from."""

    def __init__(self, module, network, graph, wrapper):
        self.is_evaluated = not any(part.training for part in module.modules())
        self.module, self.network, self.graph = module, network, graph
        self.notes = [*graph.notes, *network.notes, *([EVALUATED] if self.is_evaluated else [])]
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
    batch = first_batch(example)
    if is_array(batch):
        return samples_of(batch), None
    if not isinstance(batch, (tuple, list)) or len(batch) not in (1, 2):
        raise Error(f"the example must be what a loader gives: samples, or (samples, targets), as tensors; it is "
                    f"{what(batch)}")
    if len(batch) == 1 or batch[1] is None:
        return samples_of(batch[0]), None
    targets = tuple(batch[1]) if isinstance(batch[1], (tuple, list)) else batch[1]
    for target in targets if isinstance(targets, tuple) else (targets,):
        if not is_array(target):
            raise Error(f"a target of the example is {a(target)}; give tensors, one or a tuple of them")
    return samples_of(batch[0]), tuple(map(tensor_of, targets)) if isinstance(targets, tuple) else tensor_of(targets)


def first_batch(example):
    """Of a loader; what is none is a batch itself."""
    if isinstance(example, (str, bytes, dict)) or is_array(example) or not hasattr(example, "__iter__"):
        return example
    if isinstance(example, (tuple, list)):
        if len(example) == 0:
            raise Error("the example is empty; give a batch as the loader gives it, (samples, targets), or the loader")
        return example
    if isinstance(example, collections.abc.Iterator):
        raise Error(f"the example is {a(example)}, which gives each batch once; give one batch of it, or a DataLoader")
    for batch in example:
        return batch
    raise Error("the loader that is the example has no batches")


def is_array(value):
    return isinstance(value, torch.Tensor) or hasattr(value, "__array_interface__")


def tensor_of(value, word="the targets"):
    """A tensor as it is; a numpy array as one, on its memory."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if not is_array(value):
        raise Error(f"{word}: {what(value)} is no tensor; give a tensor, or a numpy array")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it cannot be written to, which nobody does
            return torch.as_tensor(value if min(value.strides, default=0) >= 0 else value.copy())
    except (TypeError, ValueError, AttributeError) as error:
        said = " ".join(str(error).split())
        raise Error(f"{word}: the array cannot be taken as a tensor: {said}") from None


def what(value):
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else a(value)


def samples_of(value):
    tensor = tensor_of(value, "the samples of the example")
    # Modules are of floats, numpy's numbers of doubles; a session reads both.
    return tensor.float() if tensor.dtype == torch.float64 and not isinstance(value, torch.Tensor) else tensor


def several(tensor):
    """A single sample would be taken for a fixed extent; twice the same one is not."""
    return torch.cat([tensor, tensor]) if tensor.dim() > 0 and tensor.shape[0] == 1 else tensor


def checked_module(module):
    if isinstance(module, type) and issubclass(module, torch.nn.Module):
        name = module.__name__
        raise Error(f"{name} is a class of modules; give a module that is made of it: {name}(...)")
    if not isinstance(module, torch.nn.Module):
        raise Error(f"{a(module)} is not a torch.nn.Module; give the module itself")
    return module._orig_mod if hasattr(module, "_orig_mod") else module  # of torch.compile


def check_loss(loss):
    if isinstance(loss, type):
        raise Error(f"the loss is the class {loss.__name__}; give one that is made of it: {loss.__name__}()")
    if loss is not None and not callable(loss):
        raise Error(f"the loss is {a(loss)}; give what is called with output and targets, such as "
                    f"torch.nn.CrossEntropyLoss(), or None where the module returns its loss")


def check_norms(module):
    for name, part in module.named_modules():
        norm = isinstance(part, torch.nn.modules.batchnorm._BatchNorm)
        if norm and part.training and part.track_running_stats and part.momentum is None:
            raise Error(f"batch norm '{name}' has momentum=None, an average over all steps; give it a number, "
                        f"such as 0.1")


def trace(module, example, loss=None, *, forward=None, fallback_loss=""):
    """The network of a module, each part in the mode that it is in. Without a loss the module has to return it; with
    `forward` it is the module alone, to which tidepool puts `fallback_loss`."""
    module = checked_module(module)
    check_loss(loss)
    samples, targets = parts_of(example)
    place = next((tensor.device for tensor in module.parameters()), torch.device("cpu"))
    inputs = [several(samples.detach().to(place))]
    if forward or targets is None and loss is None and fallback_loss:
        wrapper = Forward(module)
    else:
        if targets is None:
            raise Error("the loss needs targets: give the example as (samples, targets)" if loss is not None else
                        "there is no loss: give loss=, or where the module returns it, an example with targets")
        wrapper = WithLoss(module, loss, "tuple" if isinstance(targets, tuple) else "one")
        inputs += [several(target.to(place)) for target in (targets if isinstance(targets, tuple) else (targets,))]
        fallback_loss = ""
    check_norms(module)
    program = export(wrapper, inputs)
    graph = graph_of(program, wrapper, type(module).__name__)
    network = from_graph(graph.words, loss=fallback_loss)
    if graph.has_soft_labels:
        if graph.has_hard_labels:
            raise Error("one loss compares with classes and another with probabilities; give both the same")
        network = network.adapt(soft_labels=True)
    return Traced(module, network, graph, wrapper)

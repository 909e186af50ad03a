"""One step of a module in PyTorch's doubles against the double interpreter on what was imported."""

import copy

import numpy
import torch

import tidepool.torch
from tidepool import _tidepool
from tidepool.torch.targets import HostTargets


def import_step(module, samples, targets, loss, *, random=False):
    traced = tidepool.torch.trace(module, (samples, targets), loss)
    host = HostTargets(traced.graph.program, traced.graph.targets)
    given = list(targets) if isinstance(targets, tuple) else [targets]
    losses = {row["input"]: row["loss"] for row in traced.network.targets}
    made = {losses[name]: tensor.numpy() for name, tensor in host(len(samples), given).items()}
    return traced, _tidepool.exact_step(traced.network, samples.double().numpy(), made, random=random)


def torch_step(module, samples, targets, loss):
    module = copy.deepcopy(module).double()
    wide = [t.double() if t.dtype.is_floating_point else t for t in
            (targets if isinstance(targets, tuple) else (targets,))]
    value = loss(module(samples.double()), tuple(wide) if isinstance(targets, tuple) else wide[0])
    value.backward()
    return value.item(), module


def check(module, samples, targets, loss, tolerance=1e-10):
    """Loss, all gradients and running statistics; what was imported."""
    traced, ours = import_step(module, samples, targets, loss)
    value, after = torch_step(module, samples, targets, loss)
    assert abs(ours["loss"] - value) <= tolerance * abs(value), (ours["loss"], value)
    theirs = {name: p.grad.numpy() for name, p in after.named_parameters() if p.grad is not None}
    assert set(theirs) == set(ours["gradients"])
    whole = sum(float((g ** 2).sum()) for g in theirs.values()) ** 0.5
    for name, gradient in theirs.items():
        error = numpy.linalg.norm(ours["gradients"][name] - gradient)
        # What is zero but for rounding, such as that of a bias before a batch norm, is so in another way here.
        assert error <= tolerance * numpy.linalg.norm(gradient) + 1e-13 * whole, (name, error)
    for name, buffer in after.named_buffers():
        if "running" in name and name in ours["statistics"]:
            assert numpy.allclose(ours["statistics"][name], buffer.numpy(), rtol=1e-9, atol=1e-12), name
    return traced


def classes(count, samples, *positions):
    return torch.randint(0, count, (samples, *positions), generator=torch.Generator().manual_seed(5))

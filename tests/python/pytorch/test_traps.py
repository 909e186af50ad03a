"""What is easily got wrong between a module and a graph of it."""

import subprocess
import sys

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tidepool
import tidepool.torch
from exact import check, classes, import_step


def image(samples=3):
    return torch.randn(samples, 3, 8, 8, generator=torch.Generator().manual_seed(2))


class Written(nn.Module):
    """Writes in place through views, whose base is read afterwards."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.fc = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4, 5)

    def forward(self, x):
        x = self.conv(x)
        rows = x.view(x.shape[0], 4, 64)
        rows.mul_(2)
        turned = x.permute(0, 2, 3, 1)
        turned.add_(0.25)
        half, kept = x[:, :2], x.clone()
        x += 0.5
        x.unsqueeze(1).squeeze(1).mul_(3)
        return self.fc(rows.mean(2) + (kept * x).mean((2, 3)) + F.pad(half.mean((2, 3)), (0, 2)))


def test_in_place_writes_reach_views():
    check(Written(), image(), classes(5, 3), F.cross_entropy)


def test_a_batch_of_one_is_taken_for_any():
    torch.manual_seed(1)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    traced = tidepool.torch.trace(module, (image(1), classes(5, 1)), F.cross_entropy)
    assert traced.notes == []
    assert tidepool.plan(traced.network, 7).summary["batch"] == 7


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=0.4, eps=1e-2), nn.ReLU(True),
                                  nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4, 5)
        for norm in (self.body[1], self.body[4]):
            nn.init.normal_(norm.running_mean)
            nn.init.uniform_(norm.running_var, 0.5, 1.5)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


@pytest.mark.parametrize("frozen", [[], [1], [1, 4]])
def test_each_norm_has_a_mode_of_its_own(frozen):
    module = Normed().train()
    for place in frozen:
        module.body[place].eval()
    traced = check(module, image(), classes(5, 3), F.cross_entropy)
    assert len(traced.graph.counters) == 2 - len(frozen)
    assert module.training and all(module.body[place].training is False for place in frozen)


def test_parameters_without_gradients_are_not_trained():
    module = Normed()
    module.body[:3].requires_grad_(False)
    traced = check(module, image(), classes(5, 3), F.cross_entropy)
    rows = {row["array"]: row["trained"] for row in traced.network.weight_names}
    assert not rows["body.0.weight"] and not rows["body.1.weight"] and rows["body.3.weight"]


def test_names_are_the_modules_own():
    module = Normed()
    traced = tidepool.torch.trace(module, (image(), classes(5, 3)), F.cross_entropy)
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()
                if "num_batches" not in name}
    assert {row["array"]: row["shape"] for row in traced.network.weight_names} == expected


def test_tied_parameters_are_one():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.first, self.head = nn.Conv2d(3, 3, 3, padding=1), nn.Linear(3, 5)
            self.second = nn.Conv2d(3, 3, 3, padding=1)
            self.second.weight, self.second.bias = self.first.weight, self.first.bias

        def forward(self, x):
            return self.head(self.second(self.first(x).relu()).mean((2, 3)))
    check(Tied(), image(), classes(5, 3), F.cross_entropy)


class Masked(nn.Module):
    """What a dropout or drop path does with a given mask."""

    def __init__(self, mask):
        super().__init__()
        self.mask = torch.from_numpy(mask).double()

    def forward(self, x):
        return x * self.mask


class DropPath(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        keep = 1 - self.rate
        mask = x.new_empty((x.shape[0], 1, 1, 1)).bernoulli_(keep)
        mask.div_(keep)
        return x * mask


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv, self.path, self.drop2d = nn.Conv2d(3, 4, 3, padding=1), DropPath(0.4), nn.Dropout2d(0.3)
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(4, 5)

    def forward(self, x):
        x = self.conv(x)
        x = x + self.path(x.relu())
        return self.head(self.drop(self.drop2d(x).mean((2, 3))))


def test_masks_are_ours_in_pytorch():
    module, x, y = Dropping(), image(16), classes(5, 16)
    traced, ours = import_step(module, x, y, F.cross_entropy, random=True)
    masks = tidepool._tidepool.masks(traced.network, 16)
    assert sorted(mask.ndim for mask in masks.values()) == [2, 4, 4]
    assert all(0 < (mask == 0).mean() < 1 for mask in masks.values())
    by_kind = {mask.shape: Masked(mask) for mask in masks.values()}
    module.path, module.drop2d = by_kind[(16, 1, 1, 1)], by_kind[(16, 4, 1, 1)]
    module.drop = by_kind[(16, 4)]
    module.double()
    loss = F.cross_entropy(module(x.double()), y)
    loss.backward()
    assert ours["loss"] == pytest.approx(loss.item(), rel=1e-6)  # masks are floats
    for name, parameter in module.named_parameters():
        assert numpy.allclose(ours["gradients"][name], parameter.grad, rtol=1e-5, atol=1e-8), name


MISSING = [
    (lambda x: x.cumsum(2), "cumsum", "a convolution with a fixed kernel"),
    (lambda x: torch.where(x > 0, x, -x), "gt", "for which there is no layer"),
    (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), "upsample_bicubic2d", "mode='bilinear'"),
    (lambda x: x[:, ::2], "slice", "layer for step 1"),
    (lambda x: x.flip(1), "flip", "docs/pytorch.md"),
    (lambda x: torch.einsum("bchw,bdhw->bcd", x, x)[..., None], "there is no layer", "instead"),
    (lambda x: x.round(), "round", "docs/pytorch.md"),
    (lambda x: x - x.mean(0, keepdim=True), "mean", "over the batch"),
    (lambda x: x.view(-1, 2, 8, 8).relu().view(x.shape[0], -1), "view", "batch"),
    (lambda x: F.layer_norm(x, (8,), torch.ones(8)), "layer_norm", "GroupNorm(1, channels)"),
]


@pytest.mark.parametrize("function, operator, instead", MISSING)
def test_what_is_missing_is_named_with_its_line(function, operator, instead):
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, padding=1)

        def forward(self, x):
            return function(self.conv(x)).flatten(1)[:, :5]
    with pytest.raises(tidepool.Error) as caught:
        tidepool.torch.trace(Module(), (image(4), classes(5, 4)), F.cross_entropy)
    text = str(caught.value)
    assert "\n" not in text and "test_traps.py:" in text
    if operator in ("cumsum", "upsample_bicubic2d", "flip", "round", "layer_norm"):
        assert operator in text and instead in text


WRONG = [
    (lambda out, y: F.l1_loss(out, out.detach()), "detach"),
    (lambda out, y: F.cross_entropy(out, y, weight=torch.rand(5)), "leave out weight"),
    (lambda out, y: F.cross_entropy(out, y, reduction="sum"), "use reduction='mean'"),
    (lambda out, y: out, "the loss is none of those there are"),
    (lambda out, y: F.cross_entropy(out, y) - 0.1 * F.mse_loss(out, F.one_hot(y, 5).float()), "must be above 0"),
    (lambda out, y: F.cross_entropy(out, y) + out.square().mean(), "loss"),
    (lambda out, y: F.mse_loss(out, torch.zeros(3, 5)), "the same for all samples"),
]


@pytest.mark.parametrize("loss, text", WRONG)
def test_losses_that_there_are_not(loss, text):
    with pytest.raises(tidepool.Error) as caught:
        tidepool.torch.trace(Normed(), (image(), classes(5, 3)), loss)
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_no_module_or_example():
    with pytest.raises(tidepool.Error, match="is not a torch.nn.Module"):
        tidepool.torch.trace(F.relu, image())
    with pytest.raises(tidepool.Error, match="the example must be what a loader gives"):
        tidepool.torch.trace(Normed(), "image", F.cross_entropy)
    with pytest.raises(tidepool.Error, match="the loss needs targets"):
        tidepool.torch.trace(Normed(), image(), F.cross_entropy)

    class Branching(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x
    with pytest.raises(tidepool.Error, match="torch.export cannot follow the module") as caught:
        tidepool.torch.trace(Branching(), (image(), classes(5, 3)), F.cross_entropy)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("order", ["tidepool, torch", "torch, tidepool"])
def test_either_is_imported_first(order):
    # Both load libraries of CUDA, of which a process has one by each name.
    done = subprocess.run([sys.executable, "-c", f"import {order}; torch.ones(1).sum(); tidepool.plan(tidepool.network('lenet'), 4)"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

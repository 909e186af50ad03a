"""Each operator in a small module, in doubles against PyTorch."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from exact import check, classes


class Between(nn.Module):
    """A function between two convolutions, so that its gradient counts."""

    def __init__(self, function, channels=4, out=None):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.function = nn.Conv2d(3, channels, 3, padding=1), function
        self.last = nn.Conv2d(out or channels, 5, 1)

    def forward(self, x):
        return self.last(self.function(self.first(x))).mean((2, 3))


def image(samples=3, size=8):
    return torch.randn(samples, 3, size, size, generator=torch.Generator().manual_seed(2))


FUNCTIONS = {
    "relu": F.relu, "relu_": lambda x: F.relu(x, inplace=True), "relu6": F.relu6, "hardtanh": F.hardtanh,
    "leaky": lambda x: F.leaky_relu(x, 0.2), "elu": F.elu, "selu": F.selu, "celu": lambda x: F.celu(x, 0.7),
    "silu": F.silu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "mish": F.mish,
    "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
    "softplus": F.softplus, "softplus_beta": lambda x: F.softplus(x, 2.0), "exp": torch.exp, "abs": torch.abs,
    "neg": lambda x: -x, "square": torch.square, "pow": lambda x: x ** 2, "sqrt": lambda x: (x.square() + 1).sqrt(),
    "clamp": lambda x: x.clamp(-0.3, 0.4), "clamp_min": lambda x: x.clamp(min=-0.2), "affine": lambda x: 2 * x - 0.5,
    "rsub": lambda x: 1 - x, "alpha": lambda x: torch.add(x, x.sigmoid(), alpha=0.3), "div": lambda x: x / 3,
    "product": lambda x: x * x.sigmoid(), "quotient": lambda x: x / (1 + x.square()),
    "excite": lambda x: x * x.mean((2, 3), keepdim=True).sigmoid(),
    "excite_pool": lambda x: F.adaptive_avg_pool2d(x, 1).sigmoid() * x,
    "softmax": lambda x: x.softmax(1), "max_pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max_pool_ceil": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), "max_pool_default": lambda x: F.max_pool2d(x, 2),
    "avg_pool": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "avg_pool_apart": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (3, 2)), "global_max": lambda x: F.adaptive_max_pool2d(x, 1),
    "mean_rows": lambda x: x.mean(2, keepdim=True), "sum": lambda x: x.sum((2, 3), keepdim=True),
    "amax": lambda x: x.amax((2, 3), keepdim=True), "normalize": lambda x: F.normalize(x, dim=1),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1)), "pad_value": lambda x: F.pad(x, (1, 1, 1, 1), value=0.5),
    "reflect": lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"),
    "replicate": lambda x: F.pad(x, (1, 2, 2, 1), mode="replicate"),
    "nearest": lambda x: F.interpolate(x, scale_factor=2), "nearest_size": lambda x: F.interpolate(x, size=(5, 11)),
    "bilinear": lambda x: F.interpolate(x, size=(13, 6), mode="bilinear"),
    "bilinear_corners": lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=True),
    "crop": lambda x: x[:, :, 1:-2, 2:], "channels": lambda x: x[:, 1:3].sum(1, keepdim=True).expand(-1, 4, -1, -1) * x,
    "chunk": lambda x: torch.cat([part.relu() for part in x.chunk(2, 1)], 1),
    "split": lambda x: torch.cat([part.tanh() for part in x.split([1, 3], 1)][::-1], 1),
    "unbind": lambda x: torch.stack(x.unbind(1), 1), "select": lambda x: x * x[:, 0].unsqueeze(1),
    "shuffle": lambda x: F.channel_shuffle(x, 2),
    "shuffle_by_hand": lambda x: x.view(x.shape[0], 2, 2, *x.shape[2:]).transpose(1, 2).reshape(x.shape),
    "permute": lambda x: x.permute(0, 2, 3, 1).relu().permute(0, 3, 1, 2),
    "flatten": lambda x: x.flatten(1).relu().unflatten(1, (4, 8, 8)),
    "pixels": lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2),
    "drop_nothing": lambda x: F.dropout(x, 0.0), "group_norm": lambda x: F.group_norm(x, 2),
    "instance_norm": F.instance_norm, "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "clone": lambda x: x.clone().relu_() + x, "constant": lambda x: x * torch.tensor([1., 2., 3., 4.]).view(1, 4, 1, 1),
    "ones": lambda x: x + torch.ones_like(x),
}


# PyTorch's slope of a hard sigmoid is a sixth of floats, also in doubles.
LOOSER = {"celu": 1e-7, "hardsigmoid": 1e-7}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check(Between(FUNCTIONS[name]), image(), classes(5, 3), F.cross_entropy, LOOSER.get(name, 1e-10))


MODULES = {
    "depthwise": lambda: nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=4), "same": lambda: nn.Conv2d(4, 8, 4, padding="same"),
    "dilated": lambda: nn.Conv2d(4, 8, 3, dilation=2, padding=2, bias=False), "valid": lambda: nn.Conv2d(4, 8, 3, padding="valid"),
    "transposed": lambda: nn.ConvTranspose2d(4, 8, 3, 2, 1, output_padding=1),
    "batch_norm": lambda: nn.Sequential(nn.BatchNorm2d(4, momentum=0.3, eps=1e-3), nn.Conv2d(4, 8, 1)),
    "plain_norm": lambda: nn.Sequential(nn.BatchNorm2d(4, affine=False), nn.Conv2d(4, 8, 1)),
    "group_norm": lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.Conv2d(4, 8, 1)),
    "linear_last": lambda: LastAxis(),
}


class LastAxis(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.gamma = nn.Linear(4, 8), nn.Parameter(torch.rand(8))

    def forward(self, x):
        return (self.linear(x.permute(0, 2, 3, 1)) * self.gamma).permute(0, 3, 1, 2)


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    torch.manual_seed(3)
    module = MODULES[name]()
    check(Between(module, out=8), image(), classes(5, 3), F.cross_entropy)


def test_a_line_of_values():
    torch.manual_seed(3)
    module = nn.Sequential(nn.Conv1d(3, 4, 3, 2, 1), nn.BatchNorm1d(4), nn.ReLU(True), nn.MaxPool1d(2), nn.AvgPool1d(2),
                           nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 5))
    check(module, torch.randn(4, 3, 32), classes(5, 4), F.cross_entropy)


def per_pixel(out, y):
    return F.cross_entropy(out, y, ignore_index=255)


LOSSES = {
    "smoothed": (lambda out, y: F.cross_entropy(out, y, label_smoothing=0.1), lambda: classes(5, 3)),
    "nll": (lambda out, y: F.nll_loss(F.log_softmax(out, 1), y), lambda: classes(5, 3)),
    "by_hand": (lambda out, y: F.cross_entropy(out, y, reduction="none").mean(), lambda: classes(5, 3)),
    "probabilities": (F.cross_entropy, lambda: torch.rand(3, 5).softmax(1)),
    "one_hot": (lambda out, y: F.cross_entropy(out, F.one_hot(y, 5).float()), lambda: classes(5, 3)),
    "binary": (F.binary_cross_entropy_with_logits, lambda: torch.rand(3, 5).round()),
    "squares": (F.mse_loss, lambda: torch.randn(3, 5)),
    "squares_scaled": (lambda out, y: F.mse_loss(out, 2 * y - 1), lambda: torch.randn(3, 5)),
    "sum": (lambda out, y: F.cross_entropy(out, y[0]) + 0.25 * F.mse_loss(out, y[1]),
            lambda: (classes(5, 3), torch.randn(3, 5))),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    loss, targets = LOSSES[name]
    torch.manual_seed(4)
    check(Between(F.relu), image(), targets(), loss, tolerance=1e-6 if name in ("probabilities", "squares",
                                                                               "squares_scaled", "sum") else 1e-10)


def test_pixels_with_ignored_ones():
    torch.manual_seed(4)
    y = classes(5, 3, 8, 8)
    y[0, :3] = 255
    check(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 5, 1)), image(), y, per_pixel, 1e-7)


def test_several_outputs():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.main, self.side = nn.Conv2d(3, 4, 3, 2), nn.Linear(4, 5), nn.Linear(4, 2)

        def forward(self, x):
            x = self.body(x).relu().mean((2, 3))
            return {"main": self.main(x), "side": (self.side(x), x)}

    def loss(out, y):
        return F.cross_entropy(out["main"], y[0]) + 0.4 * F.mse_loss(out["side"][0], y[1])
    torch.manual_seed(4)
    check(Two(), image(), (classes(5, 3), torch.randn(3, 2)), loss, 1e-6)

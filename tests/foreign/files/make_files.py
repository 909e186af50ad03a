"""Makes the files of this folder: python3 make_files.py (with PyTorch, torchvision, onnx and onnxscript).

Small networks, each exported in four ways, and what PyTorch computes for them in double precision:

    NAME.script.onnx  the TorchScript exporter, training=TRAINING
    NAME.train.onnx   dynamo, optimize=False, of model.train()
    NAME.eval.onnx    dynamo, optimize=False, of model.eval()
    NAME.fold.onnx    dynamo as it is by default, of model.eval()
    NAME.txt          the loss of a step with dropout and drop path off, gradients, running statistics behind it,
                      and the result in evaluation before it

Numbers of a text are one line each: what, name, values. Element i of the input is sin(0.37 i), label i is i mod classes.
"""

import logging
import re
import warnings
from pathlib import Path

import onnx
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

FOLDER = Path(__file__).parent
ROADS = ["script", "train", "eval", "fold"]


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.first = nn.Conv2d(4, 4, 3, 1, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(4, eps=1e-3, momentum=0.2)
        self.down = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4))
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = self.pool(self.relu(self.norm(self.stem(x))))
        x = self.relu(self.down(x) + self.first_norm(self.first(x)))
        return self.head(self.drop(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)))


class Mobile(nn.Module):
    """Depthwise convolutions, squeeze and excitation, the functions that go with them, stochastic depth."""

    def __init__(self):
        super().__init__()
        self.expand = nn.Conv2d(3, 6, 1, bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.depth = nn.Conv2d(6, 6, 3, 1, 1, groups=6, bias=False)
        self.depth_norm = nn.BatchNorm2d(6)
        self.squeeze = nn.Conv2d(6, 2, 1)
        self.excite = nn.Conv2d(2, 6, 1)
        self.path = torchvision.ops.StochasticDepth(0.2, "row")
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x = F.hardswish(self.norm(self.expand(x)))
        y = F.silu(self.depth_norm(self.depth(x)))
        y = y * F.hardsigmoid(self.excite(F.relu6(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        x = x + self.path(y)
        return self.head(x.mean([2, 3]))


class Shuffle(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, 2, 1, groups=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.branch = nn.Conv2d(4, 4, 3, 1, 1, groups=4)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = F.relu(self.norm(self.first(x)))
        for _ in range(2):
            left, right = x.chunk(2, dim=1)
            x = torch.cat((left, torch.sigmoid(self.branch(right))), dim=1)
            b, c, h, w = x.shape
            x = x.view(b, 2, c // 2, h, w).transpose(1, 2).contiguous().view(b, c, h, w)
        return self.head(x.mean([2, 3]))


class Segment(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.wide = nn.Conv2d(4, 4, 3, 1, 2, dilation=2)
        self.whole = nn.Conv2d(4, 4, 1)
        self.last = nn.Conv2d(8, 3, 1)

    def forward(self, x):
        size = x.shape[-2:]
        x = F.relu(self.norm(self.first(x)))
        whole = F.relu(self.whole(F.adaptive_avg_pool2d(x, 1)))
        whole = F.interpolate(whole, size=x.shape[-2:], mode="bilinear", align_corners=False)
        x = torch.cat([torch.tanh(self.wide(x)), whole], dim=1)
        return F.interpolate(self.last(x), size=size, mode="bilinear", align_corners=False)


class Functions(nn.Module):
    """What exporters take to pieces."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, bias=False)
        self.norm = nn.GroupNorm(2, 4)
        self.scale = nn.Parameter(torch.tensor([0.5, -0.3, 0.8, 1.1]).reshape(4, 1, 1))
        self.second = nn.Conv2d(4, 4, 3, 1, 0)
        self.up = nn.ConvTranspose2d(4, 3, 2, 2)
        self.head = nn.Linear(3, 3)

    def forward(self, x):
        x = F.gelu(self.norm(self.first(F.pad(x, (1, 1, 1, 1), mode="reflect"))))
        x = F.mish(x * self.scale) + F.gelu(x, approximate="tanh")
        x = F.leaky_relu(self.second(F.pad(x, (1, 0, 1, 0))), 0.1) - F.elu(x[:, :, 1:, 1:])
        x = F.avg_pool2d(F.softplus(x), 2, ceil_mode=True)
        x = F.normalize(self.up(x), dim=1)
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        return self.head(x.flatten(2).mean(2))


NETWORKS = {"residual": Residual, "mobile": Mobile, "shuffle": Shuffle, "segment": Segment, "functions": Functions}


def build(name):
    torch.manual_seed(5)
    model = NETWORKS[name]()
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.2)
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, 0, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return model


def example():
    return torch.sin(0.37 * torch.arange(2 * 3 * 10 * 10, dtype=torch.float64)).reshape(2, 3, 10, 10)


def without_random(model):
    for module in model.modules():
        if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
    return model


def exact_hardsigmoid(x, inplace=False):
    """PyTorch's own takes 1/6 as a float in its backward, of doubles, too."""
    return F.relu6(x + 3) / 6


def write_numbers(name):
    lines = []
    own, F.hardsigmoid = F.hardsigmoid, exact_hardsigmoid

    def line(what, key, value):
        lines.append(" ".join([what, key] + [f"{v:.15g}" for v in value.detach().reshape(-1).tolist()]))

    x = example()
    line("answer", "-", build(name).double().eval()(x))
    model = without_random(build(name)).double().train()
    result = model(x)
    labels = (torch.arange(result.numel() // 3) % 3).reshape(result.shape[0], *result.shape[2:])
    loss = F.cross_entropy(result, labels)
    loss.backward()
    line("loss", "-", loss)
    for key, value in model.named_parameters():
        line("gradient", key, value.grad)
    for key, value in model.named_buffers():
        if "running" in key:
            line("statistic", key, value)
    F.hardsigmoid = own
    (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n")


def shorten(path, name):
    """Leaves out what says where a node comes from, but for the places; and takes running statistics back to what they
    were before the exporter ran the network."""
    model = onnx.load(path)
    state = build(name).state_dict()
    for array in model.graph.initializer:
        if "running" in array.name:
            array.CopyFrom(onnx.numpy_helper.from_array(state[array.name].numpy(), array.name))
    for node in model.graph.node:
        traces = [p.value for p in node.metadata_props if p.key == "pkg.torch.onnx.stack_trace"]
        del node.metadata_props[:]
        node.doc_string = ""
        if traces:
            places = [line.strip() for line in traces[0].split("\n") if line.strip().startswith("File")]
            entry = node.metadata_props.add()
            entry.key = "pkg.torch.onnx.stack_trace"
            entry.value = "\n".join(re.sub(r'".*?(/torch/[^"]*|/[^/"]*)"', r'"/lib\1"', place) for place in places)
    del model.graph.value_info[:]
    del model.graph.metadata_props[:]
    del model.metadata_props[:]
    onnx.save(model, path)


def export(name, road):
    path = FOLDER / f"{name}.{road}.onnx"
    x = example().float()
    if road == "script":
        torch.onnx.export(build(name).train(), x, path, dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    else:
        model = build(name).train() if road == "train" else build(name).eval()
        torch.onnx.export(model, (x,), path, dynamo=True, optimize=road == "fold", external_data=False, verbose=False,
                          dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    shorten(path, name)


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    for name in NETWORKS:
        write_numbers(name)
        for road in ROADS:
            export(name, road)


if __name__ == "__main__":
    main()

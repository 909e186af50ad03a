#!/usr/bin/env python3
"""PyTorch's side of the GPU benchmarks: trains a network on synthetic data and says how fast.

As a module it needs no PyTorch until a function is called. As a program it runs one case in a process
of its own and prints one JSON object:

    benchmarks/torch_side.py MODEL BATCH [--precision tf32|bf16] [--search] [--compiled] [--checkpoints]
                             [--memory 12GiB]

NHWC, SGD with momentum, its one batch on the device already; Inception-v4 comes from timm, the others
from torchvision, whose names have underscores (mobilenet_v2) where Tidepool's have hyphens.
"""
import argparse
import json
import statistics
import time

TORCHVISION = {"resnext50": "resnext50_32x4d", "wide-resnet50": "wide_resnet50_2", "shufflenet-v2": "shufflenet_v2_x1_0",
               "squeezenet": "squeezenet1_1", "googlenet": "googlenet"}
BLOCKS = ("BasicBlock", "Bottleneck", "InvertedResidual", "MBConv", "FusedMBConv", "ResBottleneckBlock")
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 1e3, "MB": 1e6, "GB": 1e9}


def bytes_of(text):
    unit = next((u for u in UNITS if text.endswith(u)), "")
    return float(text[: len(text) - len(unit)]) * UNITS.get(unit, 1)


def torch_model(model):
    if model == "inception-v4":
        import timm

        return timm.create_model("inception_v4"), 299
    import torchvision

    if model == "inception-v3":
        return torchvision.models.inception_v3(weights=None, aux_logits=False, init_weights=False), 299
    return getattr(torchvision.models, TORCHVISION.get(model, model.replace("-", "_")))(weights=None), 224


def use_checkpoints(net):
    """Runs residual blocks, or else the children of `features` or of the network, again in the backward pass."""
    from torch.utils.checkpoint import checkpoint

    dense = [m for m in net.modules() if type(m).__name__ == "_DenseLayer"]
    for layer in dense:
        layer.memory_efficient = True  # torchvision's own way
    if dense:
        return
    blocks = [m for m in net.modules() if type(m).__name__ in BLOCKS
              or type(m).__name__.startswith("Inception") and type(m).__name__ != "Inception3"]
    if not blocks:
        blocks = list(getattr(net, "features", net).children())
    for block in blocks:
        block.forward = (lambda inner: lambda *x: checkpoint(inner, *x, use_reentrant=False))(block.forward)


def limit_memory(text):
    import torch

    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(bytes_of(text) / total)


def step_seconds(model, batch, precision, search, compiled=False, checkpoints=False):
    """The times of ten steps after five to warm up; none where memory does not suffice."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = search
    net, size = torch_model(model)
    times = []
    try:
        if checkpoints:
            use_checkpoints(net)
        net = net.cuda().to(memory_format=torch.channels_last).train()
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
        forward = torch.compile(net) if compiled else net
        x = torch.randn(batch, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
        labels = torch.zeros(batch, dtype=torch.long, device="cuda")
        for step in range(15):
            torch.cuda.synchronize()
            start = time.perf_counter()
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "bf16"):
                loss = torch.nn.functional.cross_entropy(forward(x), labels)
            loss.backward()
            optimizer.step()
            torch.cuda.synchronize()
            if step >= 5:
                times.append(time.perf_counter() - start)
    except torch.cuda.OutOfMemoryError:
        times = []
    net = forward = optimizer = x = loss = None
    torch.cuda.empty_cache()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("--precision", default="tf32", choices=["tf32", "bf16"])
    parser.add_argument("--search", action="store_true", help="cuDNN searches for its fastest algorithms")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--checkpoints", action="store_true", help="blocks are run again in the backward pass")
    parser.add_argument("--memory", default="", help="the allocator's limit, such as 12GiB")
    arguments = parser.parse_args()
    import torch

    if arguments.memory:
        limit_memory(arguments.memory)
    times = step_seconds(arguments.model, arguments.batch, arguments.precision, arguments.search, arguments.compiled,
                         arguments.checkpoints)
    median = statistics.median(times) if times else None
    print(json.dumps({
        "fits": bool(times),
        "step_seconds": median,
        "images_per_second": arguments.batch / median if median else None,
        "peak_bytes": torch.cuda.max_memory_allocated(),
        "reserved_bytes": torch.cuda.max_memory_reserved(),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }))


if __name__ == "__main__":
    main()

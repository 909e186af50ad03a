#!/usr/bin/env python3
"""How far PyTorch's own gradients on a GPU are from the double-precision references: the measure that
tests/gpu/gradients_test.cpp takes of ours. Needs torch with CUDA, and torchvision.

Per parameter, the largest difference of norm or products over the norm; see README.md.
"""
import json
import pathlib
import statistics

import torch

from make_reference import products, vision_models, vision_step


def distance(file, gradients):
    rows = json.loads((pathlib.Path(__file__).resolve().parent / file).read_text())["parameters"]
    middle = sorted(row[2] for row in rows)[len(rows) // 2]
    errors = []
    for name, _, *expected in rows:
        actual = products(name, gradients[name][1])
        errors.append(max(abs(a - e) for a, e in zip(actual, expected)) / (expected[0] + 1e-3 * middle))
    return statistics.median(errors), max(errors)


def main():
    for precision in ("fp32", "tf32", "bf16"):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
        for file, model, network, rules, batch, sample in vision_models():
            def prepare(tensor):
                tensor = tensor.float().cuda()
                return tensor.to(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor

            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "bf16"):
                loss, gradients, _ = vision_step(network, rules, batch, sample, prepare)
            median, largest = distance(file, gradients)
            print(f"torch {precision} {model}: gradients median {median:.1e}, at most {largest:.1e}", flush=True)


if __name__ == "__main__":
    main()

"""Tracing a module together with its loss, and what its nodes say about where they come from."""

import contextlib
import io
import logging
import os
import re
import sys
import sysconfig
import traceback

import torch

from .. import Error


class WithLoss(torch.nn.Module):
    """What a training step computes. Without a loss the module has to return it by itself."""

    def __init__(self, module, loss, targets):
        super().__init__()
        self.module = module
        self.loss = loss
        self.targets = targets  # whether they are one tuple, or a single tensor

    def forward(self, sample, *targets):
        if self.loss is None:
            return self.module(sample, *targets)
        return self.loss(self.module(sample), targets if self.targets == "tuple" else targets[0])


class Forward(torch.nn.Module):
    """The module alone."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, sample):
        return self.module(sample)


def export(wrapper, inputs):
    """An ExportedProgram of the wrapper as it is, with an open batch where the module allows that."""
    batch = torch.export.Dim.AUTO
    shapes = tuple({0: batch} if isinstance(value, torch.Tensor) and value.dim() > 0 else None for value in inputs)
    names = ["sample"] if isinstance(wrapper, Forward) else ["sample", "targets"]
    dynamic = {"sample": shapes[0]} if len(names) == 1 else {"sample": shapes[0], "targets": shapes[1:]}
    try:
        with without_dumps():
            return torch.export.export(wrapper, tuple(inputs), dynamic_shapes=dynamic, strict=False)
    except Error:
        raise
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [repr(error)]
        place = place_of_error(error)
        place = f" ({place})" if place else ""
        raise Error(f"torch.export cannot follow the module{place}: {lines[0].strip()}; what a step does may not "
                    f"depend on values, and shapes only on the batch") from error


@contextlib.contextmanager
def without_dumps():
    """Where tracing fails, PyTorch prints the graph so far, which is more than the one line that is raised."""
    said, before = io.StringIO(), logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        with contextlib.redirect_stderr(said):
            yield
        sys.stderr.write(said.getvalue())
    finally:
        logging.disable(before)


FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)\n?(?P<source>[^\n]*)')
TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep
PACKAGE_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
SITE_FOLDERS = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})


def short_path(path):
    for folder in (*SITE_FOLDERS, os.getcwd() + os.sep):
        if path.startswith(folder):
            return path[len(folder):]
    return path


def place_of(node):
    """The user's line: "model.py:31, in forward: x = self.pool(x)"."""
    frames = list(FRAME.finditer(node.meta.get("stack_trace") or ""))
    for frame in reversed(frames):
        if not frame["file"].startswith((TORCH_FOLDER, PACKAGE_FOLDER)):
            source = frame["source"].strip()
            place = f"{short_path(frame['file'])}:{frame['line']}, in {frame['function']}"
            return f"{place}: {source}" if source else place
    return ""


def place_of_error(error):
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((TORCH_FOLDER, PACKAGE_FOLDER, "<")):
            return f"{short_path(frame.filename)}:{frame.lineno}, in {frame.name}: {frame.line}"
    return ""


def without_wrapper(path):
    """Names of the module's own, without the one that the wrapper gives it."""
    for prefix in ("module.", "L__self__."):
        if path.startswith(prefix):
            path = path[len(prefix):]
    return "" if path == "module" else path


def layer_name(node, operator):
    """The path of the innermost module, with the operator behind it where that is not one of torch.nn's."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if not stack:
        return node.name
    path, kind = stack[-1]
    path = without_wrapper(path)
    kind = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
    if path and kind.startswith("torch.nn.modules.") and ".container." not in kind:
        return path
    return f"{path}.{operator}" if path else operator

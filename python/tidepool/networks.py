"""Networks by name, by file, or built of words."""

from __future__ import annotations

import os
import typing

from . import _tidepool
from ._tidepool import Network


def network(model: str | os.PathLike[str], *, input: typing.Sequence[int] | None = None,
            loss: str | None = "cross-entropy", weights: str | os.PathLike[str] | None = None) -> Network:
    """A network of the zoo ("resnet50", "vgg16@10" for ten classes), or of a file (net.json, net.onnx).

    input: channels, height and width, instead of the model's own. loss: for files that have none; None: they stay
    without. weights: a safetensors file by PyTorch's names.
    """
    return _tidepool.load(os.fspath(model), None if input is None else list(input), loss or "",
                          "" if weights is None else os.fspath(weights))


def from_graph(graph: dict, *, loss: str = "", input: str = "") -> Network:
    """A network of ONNX's words as plain dicts, for those who come from another framework; docs/python.md."""
    return _tidepool.import_graph(graph, loss, input)

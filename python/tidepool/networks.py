"""Networks by name, by file, or built of words."""

from __future__ import annotations

import os
import re
import typing

from . import _tidepool
from ._tidepool import Error, Network
from .checks import a, path, short, text, whole


def network(model: str | os.PathLike[str], *, input: typing.Sequence[int] | str | None = None,
            loss: str | None = "cross-entropy", weights: str | os.PathLike[str] | None = None) -> Network:
    """A network of the zoo ("resnet50", "vgg16@10" for ten classes), or of a file (net.json, net.onnx).

    input: channels, height and width, instead of the model's own; (3, 64, 64) or "3x64x64". loss: for files that have
    none; None: they stay without. weights: a safetensors file by PyTorch's names.
    """
    return _tidepool.load(path("the network", model), None if input is None else extents(input),
                          "" if loss is None else text("loss", loss),
                          "" if weights is None else path("the file of weights", weights))


def extents(input: typing.Any) -> list[int]:
    if isinstance(input, str) and re.fullmatch(r"\d{1,9}(x\d{1,9})*", input):
        return [int(extent) for extent in input.split("x")]
    if isinstance(input, str) or not hasattr(input, "__iter__"):
        raise Error(f"input={short(input)} is not a shape; give channels, height and width: (3, 64, 64), or '3x64x64'")
    return [whole("an extent of input", extent) for extent in input]


def from_graph(graph: dict, *, loss: str = "", input: str = "") -> Network:
    """A network of ONNX's words as plain dicts, for those who come from another framework; docs/python.md."""
    if not isinstance(graph, dict):
        raise Error(f"the graph is {a(graph)}, not a dict; docs/python.md says what is in one")
    return _tidepool.import_graph(graph, text("loss", loss), text("input", input))

"""What the nodes of a traced module stand for while it becomes a graph of words."""

import dataclasses
import typing

import torch

BATCH = -1  # an extent that is the batch


@dataclasses.dataclass
class Storage:
    """What several views show: in-place operators give it another value."""

    name: str  # of the graph's value
    version: int = 0


@dataclasses.dataclass
class Step:
    """From what a view is made of to the view, and back where that is possible; both map names to names."""

    forward: typing.Callable
    backward: typing.Callable | None = None
    shown: dict = dataclasses.field(default_factory=dict)  # by what it is made of: the view, made once


@dataclasses.dataclass
class Computed:
    """Made from the samples: a storage, seen through the steps of a view."""

    storage: Storage
    extents: tuple  # BATCH for the batch
    steps: tuple = ()
    seen: tuple | None = None  # version and name, as it was read last


@dataclasses.dataclass
class Parameter:
    """A trained array of the module, or a view of it, which the importer knows by the array's name."""

    name: str
    array: str
    tensor: torch.Tensor


@dataclasses.dataclass
class Constant:
    """An array that training does not change. Operators on such are computed while importing."""

    tensor: torch.Tensor
    array: str | None = None  # of the module; None: made on the way
    sources: frozenset = frozenset()  # arrays of the module that it was made from


@dataclasses.dataclass
class Fill:
    """One number everywhere, with the batch among its extents."""

    extents: tuple
    number: float | None = None  # None: not written yet


@dataclasses.dataclass
class Noise:
    """Random numbers: uniform ones between low and high, or ones with probability `keep`; then times `factor`."""

    extents: tuple
    low: float = 0.0
    high: float = 1.0
    keep: float | None = None
    factor: float = 1.0


@dataclasses.dataclass
class Target:
    """Made of targets alone: the host computes it for each batch."""

    node: torch.fx.Node
    extents: tuple


@dataclasses.dataclass
class Term:
    """A loss word, before its weight and targets stand in the graph."""

    op: str
    x: str
    target: Target
    attributes: dict
    node: torch.fx.Node
    weight: float = 1.0
    classes: tuple | None = None  # how many there are, and the label that is left out, where targets are classes


@dataclasses.dataclass
class Losses:
    """A weighted sum of losses. `reduced` is false where the mean over elements is still to come."""

    terms: list
    reduced: bool = True


@dataclasses.dataclass
class Parts:
    """Several results of one operator."""

    values: list


class Broken:
    """Something without a layer. It matters only where a result needs it."""

    def __init__(self, error):
        self.error = error


@dataclasses.dataclass
class Cell:
    """What a node stands for. In-place operators on what is not computed give all its names another value."""

    value: object

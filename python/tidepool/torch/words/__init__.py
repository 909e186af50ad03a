"""Functions from ATen's operators to words of graphs, by family."""

from . import arithmetic, functions, losses, normalizations, places, products, random, rearrangements  # noqa: F401

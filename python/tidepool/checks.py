"""What is looked at before the library is called, so that its messages stay one line."""

from __future__ import annotations

import math
import operator
import os
import typing

from ._tidepool import Error


def a(value: typing.Any) -> str:
    """What it is, with its article: "an int"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def whole(word: str, value: typing.Any) -> int:
    try:
        result = operator.index(value)
    except TypeError:
        raise Error(f"{word}={short(value)} is not a whole number") from None
    if abs(result) >= 2 ** 63:
        raise Error(f"{word}={short(value)} is too large")
    return result


def number(word: str, value: typing.Any) -> float:
    """A finite one from 0 on. Texts are none, though float() reads them."""
    try:
        result = math.nan if isinstance(value, (str, bytes, bytearray)) else float(value)
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: of a tensor with several numbers
        result = math.nan
    if not (math.isfinite(result) and result >= 0):
        raise Error(f"{word}={short(value)} is not a number from 0 on")
    return result


def numbers(word: str, value: typing.Any) -> list[float]:
    """One, or several, with any sign; None: none."""
    if value is None:
        return []
    try:
        return [float(value)] if isinstance(value, (int, float)) else [float(one) for one in value]
    except (TypeError, ValueError):
        raise Error(f"{word}={short(value)} is not a number, nor a list of 3") from None


def text(word: str, value: typing.Any) -> str:
    if not isinstance(value, str):
        raise Error(f"{word}={short(value)} is {a(value)}, not a text")
    return value


def wholes(word: str, value: typing.Any) -> list[int]:
    if not hasattr(value, "__iter__"):
        raise Error(f"{word}={short(value)} is {a(value)}, not a list of whole numbers")
    return [whole(word, one) for one in value]


def flag(word: str, value: typing.Any) -> bool:
    if not isinstance(value, bool):
        raise Error(f"{word}={short(value)} is {a(value)}, not True or False")
    return value


def path(word: str, value: typing.Any) -> str:
    try:
        return os.fsdecode(value)
    except TypeError:
        raise Error(f"{word} {short(value)} is {a(value)}; give a name, as text or a path") from None


def a_dict(word: str, value: typing.Any) -> dict:
    try:
        return dict(value)
    except (TypeError, ValueError):
        raise Error(f"{word} {short(value)} is {a(value)}, not a dict") from None


def callback(word: str, value: typing.Any) -> typing.Any:
    if value is not None and not callable(value):
        raise Error(f"{word}={short(value)} is {a(value)}, not a function")
    return value


def short(value: typing.Any) -> str:
    """Its repr, in one line that is not too long."""
    line = " ".join(repr(value).split())
    return line if len(line) <= 60 else line[:57] + "..."


def a_network(value: typing.Any) -> typing.Any:
    from ._tidepool import Network
    if not isinstance(value, Network):
        raise Error(f"{short(value)} is not a network; tidepool.network() makes one, of a name or a file")
    return value

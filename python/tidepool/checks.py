"""What is looked at before the library is called, so that its messages stay one line."""

from __future__ import annotations

import operator
import typing

from ._tidepool import Error


def whole(word: str, value: typing.Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise Error(f"{word}={value!r} is not a whole number") from None


def a_network(value: typing.Any) -> typing.Any:
    from ._tidepool import Network
    if not isinstance(value, Network):
        raise Error(f"{value!r} is not a network; tidepool.network() makes one, of a name or a file")
    return value

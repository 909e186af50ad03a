"""Plans of one step, every policy side by side, and the largest batch."""

from __future__ import annotations

import typing

from . import _tidepool
from ._tidepool import Error, Network, Plan, format_size
from .checks import a_network, callback, flag, whole


def plan(network: Network, batch: int = 32, memory: str | int | None = None, *, training: bool = True,
         **options: typing.Any) -> Plan:
    """Plans one step within `memory` of the device ("2GiB", bytes, "auto"), without running it.

    Options are those of `tide plan`: policy, device (a data sheet's name), backend, precision, host_memory, allow ...
    Throws tidepool.Infeasible where the budget is too small.
    """
    return _tidepool.plan(a_network(network), whole("batch", batch), flag("training", training),
                          {"memory": memory, **options})


class Comparison(list):
    """One dict for each policy; what no plan can beat beside it."""

    def __init__(self, answer: dict):
        super().__init__(answer["policies"])
        self.ideal_seconds: float = answer["ideal_seconds"]
        self.lower_bound_seconds: float = answer["lower_bound_seconds"]
        self.times: str = answer["times"]

    def table(self) -> typing.Any:
        """As a pandas.DataFrame."""
        try:
            import pandas
        except ImportError:
            raise Error("table() needs pandas: pip install pandas; the rows are a plain list of dicts") from None
        return pandas.DataFrame(list(self))

    def __str__(self) -> str:
        return text_table(["policy", "peak", "moved", "run again", "predicted"], [
            [row["policy"], *(
                [format_size(row["peak_bytes"]), format_size(row["offloaded_bytes"] + row["prefetched_bytes"]),
                 str(row["recomputed_tasks"]), f"{row['predicted_seconds']:.3g} s"] if row["feasible"] else
                [f"needs {format_size(row['floor_bytes'])}" if row["floor_bytes"] else "cannot", "", "", ""])]
            for row in self])


def text_table(columns: typing.Sequence[str], rows: typing.Sequence[typing.Sequence[str]]) -> str:
    """Columns side by side; the first to the left, the others to the right."""
    widths = [max(len(line[i]) for line in [columns, *rows]) for i in range(len(columns))]
    lines = []
    for line in [columns, *rows]:
        cells = [cell.ljust(widths[i]) if i == 0 else cell.rjust(widths[i]) for i, cell in enumerate(line)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def compare(network: Network, batch: int = 32, memory: str | int | None = None, *, training: bool = True,
            **options: typing.Any) -> Comparison:
    """Every policy side by side at one budget, those included that do not fit."""
    return Comparison(_tidepool.compare(a_network(network), whole("batch", batch), flag("training", training),
                                        {"memory": memory, **options}))


def fit(network: Network, memory: str | int, *, progress: typing.Callable[[int, int], object] | None = None,
        **options: typing.Any) -> dict:
    """The largest batch that `memory` holds, and what its plan amounts to.

    progress: called with a batch that is looked at and the largest so far that fits.
    """
    return _tidepool.fit(a_network(network), {"memory": memory, **options}, callback("progress", progress))

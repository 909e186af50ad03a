"""What a module would take, and what it would cost, before anything is run."""

from .. import Error, Infeasible, fit, plan
from .._tidepool import format_size, parse_size
from ..planning import text_table
from ..checks import whole
from .imported import checked_module, parts_of, trace
from .optimizers import Settings


class Explanation:
    """One row for each budget, the largest first."""

    def __init__(self, title, rows, largest, memory, notes, times):
        self.title, self.rows, self.largest, self.memory = title, rows, largest, memory
        self.notes, self.times = notes, times

    def table(self):
        """As a pandas.DataFrame."""
        try:
            import pandas
        except ImportError:
            raise Error("table() needs pandas: pip install pandas; `rows` is a plain list of dicts") from None
        return pandas.DataFrame(self.rows)

    def __str__(self):
        lines = []
        for row in self.rows:
            if not row["fits"]:
                lines.append([row["budget"], f"needs {format_size(row['needed_bytes'])}", "", "", "", ""])
                continue
            lines.append([row["budget"], format_size(row["peak_bytes"]), format_size(row["moved_bytes"]),
                          str(row["recomputed_tasks"]), f"{row['predicted_seconds']:.3g} s",
                          f"{100 * (row['slower'] - 1):+.0f}%"])
        text = f"{self.title}\n\n" + text_table(["budget", "peak", "moved", "run again", "step", "time"], lines)
        if self.largest is not None:
            text += f"\n\nlargest batch in {format_size(self.memory)}: {self.largest}"
        return text + f"\ntimes are {self.times}" + "".join(f"\nnote: {note}" for note in self.notes)

    __repr__ = __str__


def row_of(network, batch, budget, memory, options, fastest):
    try:
        made = plan(network, batch, memory, **options)
    except Infeasible as error:
        return {"budget": budget, "memory_bytes": memory, "fits": False, "needed_bytes": error.needed,
                "needed_by": error.task}, None
    summary = made.summary
    seconds = summary["predicted_seconds"]
    return {"budget": budget, "memory_bytes": memory, "fits": True, "peak_bytes": summary["peak_bytes"],
            "moved_bytes": summary["offloaded_bytes"] + summary["prefetched_bytes"],
            "host_bytes": summary["host_peak_bytes"], "recomputed_tasks": summary["recomputed_tasks"],
            "predicted_seconds": seconds, "slower": seconds / fastest if fastest else 1.0}, summary


def explain(module, example, *, memory=None, loss=None, optimizer=None, rows=6, largest_batch=True,
            **options):
    """What a training step of the module takes within `memory` and within less: peak, moved bytes, time.

    example: samples, or (samples, targets) with loss=; without one it is planned with a cross-entropy behind the
    module's first output. optimizer: of torch, or a name. Options are those of tidepool.plan: device="rtx3060" for one
    that is not here ... Nothing is run; a budget that is too small says what would do.
    """
    whole("rows", rows)
    module = checked_module(module)
    example = parts_of(example)
    traced = trace(module, example, loss, fallback_loss="" if loss is not None else "cross-entropy",
                   forward=loss is None)
    batch = int(example[0].shape[0])
    network = traced.network
    if isinstance(optimizer, str):
        options["optimizer"] = optimizer
    elif optimizer is not None:
        settings = Settings.of(optimizer)
        network = network.with_parameters(settings.by_array(traced.trained))
        options = {**settings.options, **options}
    budget = parse_size(memory) if isinstance(memory, str) else memory if memory is None else whole("memory", memory)
    free, summary = row_of(network, batch, "no limit", None, options, None)
    kept, _ = row_of(network, batch, "every tensor kept", None, {**options, "policy": "baseline"},
                     free["predicted_seconds"])
    found = [kept, free]
    limit = budget if budget is not None else free["peak_bytes"] // 2
    while len(found) < rows:
        row, _ = row_of(network, batch, format_size(limit), limit, options, free["predicted_seconds"])
        found.append(row)
        if not row["fits"]:
            break
        limit //= 2
    largest = None
    if budget is not None and largest_batch:
        try:
            largest = fit(network, budget, **options)["batch"]
        except Infeasible:
            largest = 0
    title = f"{network.name} at batch {batch}, {network.parameters:,} parameters, one training step"
    return Explanation(title, found, largest, budget, traced.notes, summary["times"])

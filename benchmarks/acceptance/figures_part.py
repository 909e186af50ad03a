"""Runs the rows of a table one after another, each in a process of its own, until the time is spent."""
import importlib.util
import json
import pathlib
import sys
import tempfile
import time

import tide_side
import torch_side
from acceptance import children, rows

INFEASIBLE = 2  # the exit status of `tide` where the budget is too small
TIDE_FIELDS = ("weights_hash", "planned_peak_bytes", "peak_bytes", "step_seconds", "predicted_step_seconds",
               "images_per_second", "offloaded_bytes", "prefetched_bytes", "recomputed_tasks")


def tide_command(program, row, memory):
    return tide_side.train_command(program, row.model, row.batch, row.precision, row.steps, memory, row.options)


def torch_command(python, row):
    limit = ("--memory", row.memory) if row.memory else ()
    # Programs are started in the repository's root.
    return [python, "benchmarks/torch_side.py", row.model, str(row.batch), "--precision", row.precision,
            *rows.TORCH_MODES[row.mode], *limit]


def command_text(row, program, python):
    """For people: percentages as they stand."""
    return " ".join(tide_command(program, row, row.memory) if row.side == "tide" else torch_command(python, row))


def json_of(text):
    """The object that a program's output ends with, or None; libraries may have printed before it."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not line.startswith("{"):
            continue
        try:
            answer = json.loads("\n".join(lines[number:]))
        except ValueError:
            continue
        return answer if isinstance(answer, dict) else None
    return None


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class FiguresPart:
    """`save` is called with what is known so far, after every row."""

    def __init__(self, table, binaries, limit, python, run, say, save):
        self._table, self._binaries, self._limit, self._python = table, pathlib.Path(binaries), limit, python
        self._run, self._say, self._save = run, say, save
        self._results = {}

    def execute(self):
        self._start = time.monotonic()
        # This Python can be asked for PyTorch without loading it; of another one, only the row can tell.
        self._has_torch = self._python != sys.executable or importlib.util.find_spec("torch") is not None
        with tempfile.TemporaryDirectory() as self._cache:
            for row in self._table:
                self._results[row.name] = {"status": "waits", **fields(row)}
            for row in self._table:
                result = self._results[row.name]
                result |= self._result_of(row)
                self._report()
                self._say(line_of(row.name, result))

    def _left(self):
        return self._limit - (time.monotonic() - self._start)

    def _result_of(self, row):
        memory = row.memory
        if row.side == "torch" and not self._has_torch:
            return {"status": "skipped", "reason": "PyTorch is not installed here"}
        if memory.endswith("%"):
            peak = self._results[rows.reference_of(row, self._table).name].get("planned_peak_bytes")
            if peak is None:
                return {"status": "skipped", "reason": f"there is no unlimited row of which to take {memory}"}
            memory = str(int(peak * float(memory[:-1]) / 100))
        if (left := self._left()) < row.seconds:
            return {"status": "skipped", "reason": f"takes {row.seconds:.0f} s, {max(left, 0):.0f} s were left"}
        if row.side == "tide":
            command = tide_command(self._binaries / "tide", row, memory)
            environment = children.tide_environment(self._binaries, self._cache)
        else:
            command, environment = torch_command(self._python, row), None
        ended = self._run(command, min(3 * row.seconds, left), environment)
        answer = tide_answer(ended, memory, row.options) if row.side == "tide" else torch_answer(ended)
        return {"command": " ".join(map(str, command[1:])), "wall_seconds": ended.seconds,
                "exit_status": ended.status, **answer}

    def _report(self):
        for row in self._table:
            if row.side == "tide":
                self._results[row.name]["weights"] = self._weights_of(row)
        self._save({"seconds": time.monotonic() - self._start, "limit": self._limit, "rows": self._results})

    def _weights_of(self, row):
        mine = self._results[row.name].get("weights_hash")
        reference = rows.reference_of(row, self._table)
        if mine is None:
            return "-"
        if not row.same_weights:
            return "not compared"
        if reference is None:
            return "reference" if any(rows.reference_of(other, self._table) == row for other in self._table) else "-"
        wanted = self._results[reference.name].get("weights_hash")
        return "-" if wanted is None else "equal" if mine == wanted else "NOT EQUAL"


def fields(row):
    return {"side": row.side, "model": row.model, "batch": row.batch, "precision": row.precision, "memory": row.memory,
            "mode": row.mode, "label": row.label, "options": list(row.options), "steps": row.steps}


def failed(reason):
    return {"status": "failed", "reason": reason}


def ended_badly(ended):
    if ended.timed_out:
        return failed(f"no end after {ended.seconds:.0f} s")
    return failed(f"{tide_side.last_line(ended.errors, 'it said nothing')} (exit status {ended.status})")


def tide_answer(ended, memory, options):
    if ended.status == INFEASIBLE:
        return failed(f"does not fit: {tide_side.last_line(ended.errors)}")
    if ended.status != 0 or ended.timed_out:
        return ended_badly(ended)
    answer = json_of(ended.output)
    if answer is None:
        return failed("it printed no JSON object")
    if missing := [name for name in TIDE_FIELDS if name not in answer]:
        return failed(f"its answer has no {missing[0]}")
    if bad := [name for name in TIDE_FIELDS[1:] if not is_number(answer[name])]:
        return failed(f"its {bad[0]} is no number")
    if not (answer["step_seconds"] > 0 and answer["predicted_step_seconds"] > 0):
        return failed("it measured or predicted no time")
    budget = None if not memory else int(torch_side.bytes_of(memory))
    cut = options[options.index("--sub-batch") + 1] if "--sub-batch" in options else None
    if cut is not None and str(answer.get("sub_batch")) != cut:
        return failed(f"its sub-batches have {answer.get('sub_batch')} samples, not {cut}")
    result = {"status": "done", "budget_bytes": budget, **answer}
    if budget is not None and answer["peak_bytes"] > budget:
        return {**result, **failed(f"its peak of {answer['peak_bytes']} bytes is above the budget of {budget}")}
    return result


def torch_answer(ended):
    if ended.status != 0 or ended.timed_out:
        return ended_badly(ended)
    answer = json_of(ended.output)
    if answer is None or not isinstance(answer.get("fits"), bool):
        return failed("it printed no JSON object")
    if not answer["fits"]:
        return {"status": "does not fit", **answer}
    if not is_number(answer.get("images_per_second")):
        return failed("its images_per_second is no number")
    return {"status": "done", **answer}


def line_of(name, result):
    if result["status"] in ("failed", "skipped"):
        return f"{name}: {result['status']}: {result['reason']}"
    if result["status"] == "does not fit":
        return f"{name}: does not fit ({result['wall_seconds']:.1f} s)"
    text = f"{name}: {1e3 * result['step_seconds']:.2f} ms"
    if result["side"] == "tide":
        text += f", predicted {1e3 * result['predicted_step_seconds']:.2f} ms"
    return text + f", {result['images_per_second']:.0f} images/s ({result['wall_seconds']:.1f} s)"


def holds(figures):
    """No row failed and no weights differ. Rows left out for want of time are named, but do not count."""
    return all(row["status"] not in ("failed", "waits") and row.get("weights") != "NOT EQUAL"
               for row in figures["rows"].values())

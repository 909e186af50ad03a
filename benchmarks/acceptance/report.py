"""What gpu_acceptance found, as Markdown for people and as JSON."""
import json
import os
import pathlib

from acceptance import figures_part, gtest_part

SLOWEST = 10
NAMED = 20  # of failed or skipped tests; all are in the JSON file


def write(data, path):
    """Both files, each in one go: a run that is killed leaves the last state whole."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for target, text in ((path, markdown(data)), (path.with_suffix(".json"), json.dumps(data, indent=1) + "\n")):
        temporary = target.with_name(target.name + ".partial")
        temporary.write_text(text)
        os.replace(temporary, target)


def table(header, entries):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for entry in entries:
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in entry) + " |")
    return "\n".join(lines)


def markdown(data):
    parts = [f"# GPU acceptance, {data['date']}", machine(data), verdict(data)]
    if "tests" in data:
        parts.append(tests(data["tests"]))
    if "figures" in data:
        parts.append(figures(data["figures"]))
    return "\n\n".join(parts) + "\n"


def machine(data):
    lines = [f"Commit {data['commit']}, `benchmarks/gpu_acceptance`.", ""]
    entries = [(name, text) for name, text in data["machine"].items() if text]
    return "\n".join(lines) + "\n" + table(["machine", ""], entries)


def holds(data):
    return (all(part["finished"] for part in parts_of(data))
            and ("tests" not in data or gtest_part.holds(data["tests"]))
            and ("figures" not in data or figures_part.holds(data["figures"])))


def parts_of(data):
    return [data[name] for name in ("tests", "figures") if name in data]


def verdict(data):
    said = []
    if "tests" in data:
        counts = data["tests"]["counts"]
        skipped = len(gtest_part.unexpected_skips(data["tests"]))
        said.append(f"{counts['passed']} of {counts['all']} tests passed, {counts['failed']} failed"
                    + (f", {skipped} were skipped that should run" if skipped else ""))
    if "figures" in data:
        found = data["figures"]["rows"].values()
        by_status = {status: sum(row["status"] == status for row in found) for status in ("failed", "skipped", "waits")}
        weights = {word: sum(row.get("weights") == word for row in found) for word in ("equal", "NOT EQUAL")}
        said.append(f"{by_status['failed']} of {len(found)} rows failed, {by_status['skipped']} were left out")
        said.append(f"weights equal in {weights['equal']} rows, not in {weights['NOT EQUAL']}")
    if not all(part["finished"] for part in parts_of(data)):
        said.append("the run did not come to its end")
    return f"**{'All that ran held' if holds(data) else 'NOT ALL HELD'}**: " + "; ".join(said) + "."


def named(names):
    more = [f"- and {len(names) - NAMED} more, in the JSON file"] if len(names) > NAMED else []
    return [f"- `{name}`" for name in names[:NAMED]] + more


def tests(part):
    counts, results = part["counts"], part["results"]
    lines = ["## Tests", "",
             f"{counts['passed']} passed, {counts['skipped']} skipped, {counts['failed']} failed, "
             f"{counts['not_run']} not run of {counts['all']},\n"
             f"in {part['seconds']:.0f} s, {part['processes']} processes beside each other."]
    lines += ["", *[f"- {problem}" for problem in part["problems"]]] if part["problems"] else []
    for status in ("failed", "skipped"):
        by_reason = {}
        for name, result in results.items():
            if result["status"] == status:
                by_reason.setdefault(short(result["reason"]), []).append(name)
        for why, names in by_reason.items():
            lines += ["", f"{status.capitalize()}: {why}", "", *named(names)]
    if part["not_run"]:
        lines += ["", "Not run, because the time was spent:", "", *named(part["not_run"])]
    if part["disabled"]:
        lines += ["", "Disabled:", "", *named(part["disabled"])]
    slowest = sorted(results.items(), key=lambda entry: -entry[1]["seconds"])[:SLOWEST]
    if slowest:
        lines += ["", table(["slowest", "s"], [(f"`{name}`", f"{result['seconds']:.1f}") for name, result in slowest])]
    return "\n".join(lines)


def short(reason):
    return " ".join(reason.split())[:200]


def figures(part):
    found = part["rows"]
    ours = {name: row for name, row in found.items() if row["side"] == "tide" and "step_seconds" in row}
    lines = ["## Figures", "", f"{len(found)} rows in {part['seconds']:.0f} s of {part['limit']:.0f}, one after "
             "another. A step is the median."]
    if ours:
        lines += ["", "### Time", "", time_table(ours, found), "", "### Memory and weights", "", memory_table(ours), "",
                  "Weights: after all steps, beside those of the unlimited row of the same precision. Rows in\n"
                  "sub-batches are not compared: their sums have another order."]
    if beside := beside_table(found):
        lines += ["", "### Beside PyTorch", "", "Images per second; PyTorch with cuDNN's search (eager, compiled), "
                  "or within its allocator's\nlimit, plainly and with each residual block run again.", "", beside]
    for status, title in (("failed", "Failed"), ("skipped", "Left out"), ("waits", "Not reached")):
        entries = [f"- {name}: {short(row.get('reason', 'the run ended before'))}"
                   for name, row in found.items() if row["status"] == status]
        if entries:
            lines += ["", f"### {title}", "", *entries]
    return "\n".join(lines)


def unlimited(row, found):
    """The unlimited row that a row's time is compared with, where it was measured."""
    for other in found.values():
        is_plain = other["side"] == "tide" and not (other["memory"] or other["label"] or other["options"])
        if is_plain and all(other[key] == row[key] for key in ("model", "batch", "precision")):
            return other if "step_seconds" in other else None
    return None


def time_table(ours, found):
    entries = []
    for name, row in ours.items():
        base = unlimited(row, found)
        overhead = ""
        if base is not None and base is not row:
            overhead = f"{100 * (row['step_seconds'] / base['step_seconds'] - 1):+.1f}%"
        entries.append((name, f"{1e3 * row['predicted_step_seconds']:.2f}", f"{1e3 * row['step_seconds']:.2f}",
                        f"{row['step_seconds'] / row['predicted_step_seconds']:.3f}", f"{row['images_per_second']:.0f}",
                        overhead))
    return table(["row", "predicted ms", "measured ms", "measured / predicted", "images/s", "time over unlimited"],
                 entries)


def memory_table(ours):
    return table(["bytes", "budget", "planned peak", "measured", "moved out", "run again", "weights", "exit"],
                 [(name, row["budget_bytes"] or "-", row["planned_peak_bytes"], row["peak_bytes"],
                   row["offloaded_bytes"], row["recomputed_tasks"], row["weights"], row["exit_status"])
                  for name, row in ours.items()])


def beside_table(found):
    """A line for each case that PyTorch has rows of; its modes are the columns."""
    cases, modes = {}, []
    for row in found.values():
        if row["side"] == "torch":
            case = " ".join(str(part) for part in (row["model"], row["batch"], row["precision"], row["memory"]) if part)
            cases.setdefault(case, {})[row["mode"]] = row
            modes += [row["mode"]] if row["mode"] not in modes else []
    entries = []
    for case, by_mode in cases.items():
        tide = found.get(case, {}).get("images_per_second")
        theirs = [row["images_per_second"] for row in by_mode.values() if row["status"] == "done"]
        ratio = f"{tide / max(theirs):.2f}" if tide and theirs else "-"
        entries.append((case, f"{tide:.0f}" if tide else "-", *[cell(by_mode.get(mode)) for mode in modes], ratio))
    return table(["", "Tidepool", *modes, "ratio to the best"], entries) if entries else ""


def cell(row):
    if row is None:
        return ""
    return f"{row['images_per_second']:.0f}" if row["status"] == "done" else row["status"]

"""Runs a GoogleTest program as groups of its tests in several processes and collects what became of each test.

Groups are taken from a queue, those that take longest first, so that no process is left alone at the end and a crash
costs one test: those behind it go on in another process.
"""
import pathlib
import re
import signal
import tempfile
import threading
import time

import tide_side
from acceptance import children, rows

GROUP_SECONDS = 20  # of work in one process, whose start takes some seconds
LINE = re.compile(r"\[( RUN      |       OK |  FAILED  |  SKIPPED )\] ([^\s,]+)(?:, where .*)?$")
TIMED = re.compile(r"^(.*) \((\d+) ms\)$")
ENDINGS = {"       OK ": "passed", "  FAILED  ": "failed", "  SKIPPED ": "skipped"}


def list_tests(text):
    """Names from --gtest_list_tests: those to run, those that are disabled."""
    suite, wanted, disabled = "", [], []
    for line in text.splitlines():
        entry = line.split("#")[0].rstrip()
        if not entry.startswith(" "):
            suite = entry if entry.endswith(".") else ""
        elif suite:
            name = suite + entry.strip()
            (disabled if re.search(r"(^|[./])DISABLED_", name) else wanted).append(name)
    return wanted, disabled


def group_tests(names):
    """Long tests by themselves, others with their neighbours; the longest groups first."""
    groups, group, total = [], [], 0.0
    for name in names:
        seconds = rows.test_seconds(name)
        if seconds >= GROUP_SECONDS / 2:
            groups.append([name])
            continue
        if group and total + seconds > GROUP_SECONDS:
            groups.append(group)
            group, total = [], 0.0
        group.append(name)
        total += seconds
    if group:
        groups.append(group)
    return sorted(groups, key=estimate, reverse=True)


def estimate(group):
    return sum(map(rows.test_seconds, group))


def without_machine(text):
    """Paths of sources from the repository's root on, wherever it was built."""
    return re.sub(r"\S*/(?=(?:tests|src)/)", "", text)


def parse(output, group):
    """What a process printed: a result for each test that ended, and the test that was running last."""
    wanted, results, running, message = set(group), {}, None, []
    for line in output.splitlines():
        timed = TIMED.match(line)
        found = LINE.search(timed[1] if timed else line)
        if found is None or found[2] not in wanted:
            message.append(line)
        elif found[1] == " RUN      ":
            running, message = found[2], []
        elif timed:  # the summary at the end has no times
            said = [without_machine(part.strip()) for part in message if part.strip()]
            results[found[2]] = {"status": ENDINGS[found[1]], "seconds": int(timed[2]) / 1000}
            if found[1] == "  FAILED  ":
                results[found[2]]["reason"] = "\n".join(said)[:4000]
            elif found[1] == "  SKIPPED ":
                results[found[2]]["reason"] = said[-1] if said else "no reason given"
            running = None
    return results, running


def signal_name(status):
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


class TestsPart:
    """`save` is called with what is known so far, after every group."""

    def __init__(self, program, limit, processes, least_timeout, run, say, save):
        self._program, self._limit, self._processes, self._least_timeout = program, limit, processes, least_timeout
        self._run, self._say, self._save = run, say, save
        self._lock = threading.Lock()
        self._queue, self._results, self._problems = [], {}, []
        self._active = 0  # groups in a process now, whose rest may come back into the queue

    def execute(self):
        self._start = time.monotonic()
        with tempfile.TemporaryDirectory() as self._caches:
            listed = self._run([str(self._program), "--gtest_list_tests"], min(60, self._limit),
                               self._environment("list"))
            self._names, self._disabled = list_tests(listed.output)
            if listed.status != 0 or not self._names:
                self._problems.append(f"its tests cannot be listed: {tide_side.last_line(listed.errors)}")
            self._queue = group_tests(self._names)
            threads = [threading.Thread(target=self._work, args=(number,), daemon=True)
                       for number in range(self._processes)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self._report()

    def _environment(self, name):
        # Caches of measured times that are not shared, because processes beside each other measure wrong times.
        environment = children.tide_environment(self._program.parent, pathlib.Path(self._caches) / name)
        for variable in ("GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_FILTER", "GTEST_OUTPUT"):
            environment.pop(variable, None)
        return environment

    def _left(self):
        return self._limit - (time.monotonic() - self._start)

    def _next(self):
        """A group, or None when there will be no more."""
        while True:
            with self._lock:
                if self._left() <= 0:
                    return None
                if self._queue:
                    self._active += 1
                    return self._queue.pop(0)
                if self._active == 0:
                    return None
            time.sleep(0.05)

    def _work(self, number):
        environment = self._environment(str(number))
        while (group := self._next()) is not None:
            patience = max(self._least_timeout, 4 * estimate(group))
            left = self._left()
            ended = self._run([str(self._program), "--gtest_filter=" + ":".join(group), "--gtest_color=no"],
                              min(patience, left), environment)
            with self._lock:
                self._active -= 1
                self._take(group, ended, at_limit=ended.timed_out and left < patience)
                self._report()

    def _take(self, group, ended, at_limit):
        results, running = parse(ended.output, group)
        rest = [name for name in group if name not in results]
        said = tide_side.last_line(ended.errors or ended.output)
        if ended.timed_out:
            reason = f"no end after {ended.seconds:.0f} s"
        elif ended.status < 0:
            reason = f"crashed ({signal_name(ended.status)}): {said}"
        else:
            reason = f"the process ended with {ended.status} and without a result: {said}"
        if at_limit:
            rest = []  # reported as not run
        elif running is not None:
            results[running] = {"status": "failed", "seconds": ended.seconds, "reason": without_machine(reason)}
            rest.remove(running)
        elif rest and results:  # between two tests: the others may still be run
            self._problems.append(f"{without_machine(reason)}, before {rest[0]}")
        elif rest:  # nothing was run; the next process would do no better
            results |= {name: {"status": "failed", "seconds": 0, "reason": without_machine(reason)} for name in rest}
            rest = []
        elif ended.status not in (0, 1) or (ended.status == 1 and not any_failed(results)):
            self._problems.append(f"a process ended with {ended.status} behind its {len(group)} tests: {said}")
        if rest:
            self._queue.append(rest)
        self._results |= results
        counts = count(results)
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        self._say(f"tests: {counts['passed']} passed, {counts['skipped']} skipped, {counts['failed']} failed of "
                  f"{group[0]}{more} ({ended.seconds:.1f} s)")

    def _report(self):
        missing = [name for name in self._names if name not in self._results]
        self._save({
            "counts": {**count(self._results), "not_run": len(missing), "disabled": len(self._disabled),
                       "all": len(self._names)},
            "seconds": time.monotonic() - self._start,
            "processes": self._processes,
            "problems": list(self._problems),
            "not_run": missing,
            "disabled": self._disabled,
            "results": dict(self._results),
        })


def any_failed(results):
    return any(result["status"] == "failed" for result in results.values())


def count(results):
    return {status: sum(result["status"] == status for result in results.values()) for status in ENDINGS.values()}


def unexpected_skips(tests):
    return [name for name, result in tests["results"].items()
            if result["status"] == "skipped" and not rows.may_skip(name)]


def holds(tests):
    """Nothing failed, nothing was left out, and no test skipped itself that should not: without a device most do."""
    counts = tests["counts"]
    return (counts["failed"] == 0 and counts["not_run"] == 0 and counts["passed"] > 0 and not tests["problems"]
            and not unexpected_skips(tests))

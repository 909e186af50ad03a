#!/usr/bin/env python3
"""benchmarks/gpu_acceptance driven with programs that stand in for tide, gpu_test and PyTorch: no GPU is needed."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "benchmarks/gpu_acceptance"

# Trains nothing: what it answers follows from its command line and the environment.
FAKE_TIDE = """
    import json, os, sys, time
    arguments = sys.argv[1:]
    if arguments == ["doctor"]:
        print("what          found\\n------------  -----\\nbackend cuda  cuda Pretended GPU cuDNN 9.9")
        sys.exit(0)
    option = lambda name, otherwise: arguments[arguments.index(name) + 1] if name in arguments else otherwise
    if "--batch-norm" in arguments: time.sleep(60)
    model, memory = arguments[1], option("--memory", "")
    if model == "broken":
        sys.exit("first line\\ntide: the device is on fire")
    if model == "rubbish":
        print("{ step_seconds: soon")
        sys.exit(0)
    if model == "wide" and memory:
        print("tide: auto does not fit into it: it needs 5000 bytes", file=sys.stderr)
        sys.exit(2)
    weights = "cafe"
    if model == "wobbly" and memory: weights = "f00d"
    if "--sub-batch" in arguments: weights = "beef"
    peak = int(memory) - 10 if memory.isdigit() else 1000
    if model == "greedy" and memory: peak = int(memory) + 1
    print(json.dumps({"steps": 5, "weights_hash": weights, "planned_peak_bytes": peak, "peak_bytes": peak,
                      "step_seconds": 0.5, "predicted_step_seconds": 0.4, "images_per_second": 368.0,
                      "sub_batch": int(option("--sub-batch", "8")) if model != "whole" else 8,
                      "offloaded_bytes": 77, "prefetched_bytes": 77, "recomputed_tasks": 3}, indent=2))
"""

# Each test's name says what becomes of it.
FAKE_TESTS = """
    import os, sys, time
    tests = {tests!r}
    if "--gtest_list_tests" in sys.argv:
        for suite in dict.fromkeys(name.split(".")[0] for name in tests):
            print(suite + ".  # TypeParam = int")
            for name in tests:
                if name.startswith(suite + "."): print("  " + name.split(".")[1] + "  # GetParam() = 3")
        sys.exit(0)
    chosen = next(a for a in sys.argv if a.startswith("--gtest_filter=")).split("=", 1)[1].split(":")
    chosen = [name for name in tests if name in chosen]
    failed = []
    for name in chosen:
        if "Mute" in name: sys.exit("libnothing.so: cannot open shared object file")
        print("[ RUN      ]", name, flush=True)
        if "Fails" in name:
            print("/home/someone/tests/gpu/sum_test.cpp:7: Failure\\nExpected 4, found 5")
            print("[  FAILED  ]", name + ", where GetParam() = 3 (5 ms)", flush=True)
            failed.append(name)
        elif "Skips" in name:
            print("/home/someone/tests/gpu/sum_test.cpp:9: Skipped\\nthere is no second device")
            print("[  SKIPPED ]", name, "(0 ms)", flush=True)
        elif "Crashes" in name:
            print("a last word", file=sys.stderr, flush=True)
            os.kill(os.getpid(), 11)
        elif "Hangs" in name:
            time.sleep(60)
        else:
            print("noise without an end of line", end="")
            print("[       OK ]", name, "(12 ms)", flush=True)
    for name in failed: print("[  FAILED  ]", name + ", where GetParam() = 3")
    sys.exit(1 if failed else 0)
"""

# Stands in for the Python that has PyTorch: called with torch_side.py and its options.
FAKE_PYTHON = """
    import json, sys
    if "broken" in sys.argv: sys.exit("ImportError: no kernels")
    fits = "--checkpoints" in sys.argv or "--memory" not in sys.argv
    print("a library says hello")
    print(json.dumps({"fits": fits, "step_seconds": 1.0 if fits else None, "images_per_second": 184.0 if fits else None,
                      "torch": "9.1", "cuda": "13", "cudnn": 91900}))
"""


def tide(model="small", **more):
    return {"side": "tide", "model": model, "batch": 8, "precision": "tf32", "seconds": 2, "steps": 5, **more}


def torch(mode, model="small", **more):
    return {"side": "torch", "model": model, "batch": 8, "precision": "tf32", "seconds": 2, "mode": mode, **more}


class GpuAcceptance(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.output = self.folder / "out/result.md"
        self.program("tide", FAKE_TIDE)
        self.program("python", FAKE_PYTHON)
        self.make_tests(["Sums.Adds"])
        (self.folder / "commit.txt").write_text("abc123\n")

    def program(self, name, text):
        file = self.folder / name
        file.write_text(f"#!{sys.executable} -S\n" + textwrap.dedent(text))
        file.chmod(0o755)

    def make_tests(self, names):
        self.program("gpu_test", FAKE_TESTS.replace("{tests!r}", repr(names)))

    def command(self, *arguments, rows=None):
        if rows is not None:
            (self.folder / "rows.json").write_text(json.dumps(rows))
            arguments = (*arguments, "--rows", self.folder / "rows.json")
        return [sys.executable, SCRIPT, "--binaries", self.folder, "--output", self.output, "--processes", "2",
                "--python", self.folder / "python", *arguments]

    def call(self, *arguments, rows=None):
        return subprocess.run(self.command(*arguments, rows=rows), capture_output=True, text=True, timeout=50)

    def found(self):
        return json.loads(self.output.with_suffix(".json").read_text())

    def figures(self, rows, *more):
        ended = self.call("--figures", *more, rows=rows)
        self.assertTrue(self.output.exists(), ended.stderr)
        return ended, self.found()["figures"]["rows"], self.output.read_text()

    # Tests

    def test_all_tests_pass(self):
        self.make_tests(["Sums.Adds", "Sums.Subtracts", "Cases/Products.Multiplies/one"])
        ended = self.call("--tests")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        found = self.found()
        self.assertEqual(found["tests"]["counts"],
                         {"passed": 3, "failed": 0, "skipped": 0, "not_run": 0, "disabled": 0, "all": 3})
        self.assertEqual(found["tests"]["results"]["Cases/Products.Multiplies/one"],
                         {"status": "passed", "seconds": 0.012})
        text = self.output.read_text()
        self.assertIn("Commit abc123", text)
        self.assertIn("Pretended GPU cuDNN 9.9", text)
        self.assertIn("All that ran held", text)
        self.assertNotIn("figures", found)

    def test_what_fails_crashes_or_is_skipped_is_named_with_the_reason(self):
        self.make_tests(["Sums.Adds", "Sums.Fails", "Sums.Skips", "Sums.Crashes", "Sums.ComesBehind",
                         "Sums.DISABLED_Old"])
        ended = self.call("--tests")
        self.assertEqual(ended.returncode, 1)
        tests = self.found()["tests"]
        self.assertEqual(tests["counts"],
                         {"passed": 2, "failed": 2, "skipped": 1, "not_run": 0, "disabled": 1, "all": 5})
        results = tests["results"]
        self.assertEqual(results["Sums.Fails"]["reason"], "tests/gpu/sum_test.cpp:7: Failure\nExpected 4, found 5")
        self.assertEqual(results["Sums.Skips"]["reason"], "there is no second device")
        self.assertEqual(results["Sums.Crashes"]["reason"], "crashed (SIGSEGV): a last word")
        self.assertEqual(results["Sums.ComesBehind"]["status"], "passed")
        text = self.output.read_text()
        for part in ("Failed: tests/gpu/sum_test.cpp:7: Failure Expected 4, found 5\n\n- `Sums.Fails`\n",
                     "NOT ALL HELD", "Skipped: there is no second device\n\n- `Sums.Skips`\n",
                     "Disabled:\n\n- `Sums.DISABLED_Old`\n"):
            self.assertIn(part, text)
        self.assertNotIn("/home/someone", text)

    def test_a_test_that_hangs_is_ended_and_those_behind_it_go_on(self):
        self.make_tests(["Sums.Hangs", "Sums.ComesBehind"])
        ended = self.call("--tests", "--least-timeout", "2")
        self.assertEqual(ended.returncode, 1)
        results = self.found()["tests"]["results"]
        self.assertRegex(results["Sums.Hangs"]["reason"], "no end after 2 s")
        self.assertEqual(results["Sums.ComesBehind"]["status"], "passed")

    def test_what_the_limit_leaves_out_is_not_run_and_does_not_pass(self):
        self.make_tests(["Sums.Hangs", "Sums.ComesBehind"])
        ended = self.call("--tests", "--limit", "2")
        self.assertEqual(ended.returncode, 1)
        tests = self.found()["tests"]
        self.assertEqual(tests["not_run"], ["Sums.Hangs", "Sums.ComesBehind"])
        self.assertIn("the time was spent:\n\n- `Sums.Hangs`\n- `Sums.ComesBehind`\n", self.output.read_text())

    def test_a_program_that_does_not_start_fails_all_of_its_tests(self):
        self.make_tests(["Sums.Mute", "Sums.Adds"])
        self.assertEqual(self.call("--tests").returncode, 1)
        self.assertEqual(self.found()["tests"]["counts"]["failed"], 2)
        self.assertIn("libnothing.so: cannot open shared object file", self.output.read_text())

    def test_only_tests_of_the_list_may_skip_themselves(self):
        self.make_tests(["Sums.Adds", "All/BackendTest.RefusesTensorsOfTheWrongSize/null"])
        text = (self.folder / "gpu_test").read_text()
        (self.folder / "gpu_test").write_text(text.replace('"Skips" in name', '"null" in name'))
        self.assertEqual(self.call("--tests").returncode, 0)
        self.make_tests(["Sums.Adds", "Sums.Skips"])
        self.assertEqual(self.call("--tests").returncode, 1)
        self.assertIn("1 were skipped that should run", self.output.read_text())

    def test_tests_that_cannot_be_listed_are_a_failure(self):
        self.program("gpu_test", "import sys; sys.exit('no driver')")
        self.assertEqual(self.call("--tests").returncode, 1)
        self.assertIn("cannot be listed: no driver", self.output.read_text())

    # Figures

    def test_rows_have_their_budgets_ratios_and_equal_weights(self):
        ended, found, text = self.figures([
            tide(), tide(memory="66%"), torch("eager"), tide(memory="25%", label="in two", same_weights=False,
                                                             options=["--sub-batch", "4", "--allow", "changed"]),
            tide(memory="12GiB"), torch("plain", memory="12GiB"), torch("blocks", memory="12GiB")])
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertEqual(found["small 8 tf32 66%"]["budget_bytes"], 660)
        self.assertIn("--memory 660", found["small 8 tf32 66%"]["command"])
        self.assertIn("| small 8 tf32 66% | 400.00 | 500.00 | 1.250 | 368 | +0.0% |", text)
        self.assertIn("| small 8 tf32 | - | 1000 | 1000 | 77 | 3 | reference | 0 |", text)
        self.assertIn("| small 8 tf32 66% | 660 | 650 | 650 | 77 | 3 | equal | 0 |", text)
        self.assertIn("| small 8 tf32 25% in two | 250 | 240 | 240 | 77 | 3 | not compared | 0 |", text)
        self.assertEqual(found["small 8 tf32 12GiB"]["weights"], "equal")
        self.assertIn("| small 8 tf32 | 368 | 184 |  |  | 2.00 |", text)
        self.assertIn("| small 8 tf32 12GiB | 368 |  | does not fit | 184 | 2.00 |", text)
        self.assertIn("| PyTorch | 9.1, CUDA 13, cuDNN 91900 |", text)
        self.assertIn("small 8 tf32 66%: 500.00 ms, predicted 400.00 ms, 368 images/s", ended.stdout)
        self.assertLessEqual(max(map(len, text.splitlines())), 120)

    def test_unequal_weights_fail(self):
        ended, found, text = self.figures([tide("wobbly"), tide("wobbly", memory="66%")])
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(found["wobbly 8 tf32 66%"]["weights"], "NOT EQUAL")
        self.assertIn("weights equal in 0 rows, not in 1", text)

    def test_a_row_that_fails_loses_only_itself(self):
        ended, found, text = self.figures([
            tide("broken"), tide("broken", memory="66%"), tide("rubbish"), tide("wide"), tide("wide", memory="66%"),
            tide("greedy"), tide("greedy", memory="66%"), torch("eager", "broken"), tide(),
            tide("whole", options=["--sub-batch", "4"])])
        self.assertEqual(ended.returncode, 1)
        self.assertEqual(found["small 8 tf32"]["status"], "done")
        self.assertEqual(found["wide 8 tf32 66%"]["exit_status"], 2)
        for part in ("- broken 8 tf32: tide: the device is on fire (exit status 1)",
                     "- rubbish 8 tf32: it printed no JSON object",
                     "- wide 8 tf32 66%: does not fit: tide: auto does not fit into it: it needs 5000 bytes",
                     "- greedy 8 tf32 66%: its peak of 661 bytes is above the budget of 660",
                     "- broken 8 tf32 PyTorch eager: ImportError: no kernels (exit status 1)",
                     "- whole 8 tf32: its sub-batches have 8 samples, not 4",
                     "- broken 8 tf32 66%: there is no unlimited row of which to take 66%"):
            self.assertIn(part, text)
        self.assertEqual(sum(row["status"] == "failed" for row in found.values()), 6)

    def test_a_row_that_hangs_is_ended(self):
        ended, found, _ = self.figures([tide(seconds=0.4, options=["--batch-norm", "exact"]), tide("other")])
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(found["small 8 tf32"]["reason"], "no end after")
        self.assertEqual(found["other 8 tf32"]["status"], "done")

    def test_rows_that_do_not_fit_into_the_limit_are_left_out_by_name(self):
        ended, found, text = self.figures([tide(), tide("long", seconds=500), tide("other")], "--limit", "100")
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertEqual([row["status"] for row in found.values()], ["done", "skipped", "done"])
        self.assertRegex(text, r"### Left out\n\n- long 8 tf32: takes 500 s, \d+ s were left")
        self.assertIn("long 8 tf32: skipped", ended.stdout)

    def test_without_pytorch_its_rows_are_left_out(self):
        arguments = ("--figures", "--python", sys.executable)
        if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0:
            self.skipTest("this Python has PyTorch")
        self.assertEqual(self.call(*arguments, rows=[torch("eager"), tide()]).returncode, 0)
        self.assertIn("PyTorch eager: PyTorch is not installed here", self.output.read_text())

    # What is written when

    def test_a_run_that_is_stopped_leaves_what_it_had_and_no_process(self):
        rows = [tide(), tide("slow", seconds=60, options=["--batch-norm", "exact"]), tide("never")]
        running = subprocess.Popen(self.command("--figures", rows=rows), stdout=subprocess.PIPE, text=True)
        self.assertIn("small 8 tf32: 500.00 ms", running.stdout.readline())
        found = self.found()["figures"]  # while it runs
        self.assertEqual([row["status"] for row in found["rows"].values()], ["done", "waits", "waits"])
        time.sleep(0.3)
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(timeout=10), 1)
        running.stdout.close()
        text = self.output.read_text()
        self.assertIn("the run did not come to its end", text)
        self.assertIn("- never 8 tf32: the run ended before", text)
        self.assertEqual(list(self.output.parent.glob("*.partial")), [])
        left = [file for file in pathlib.Path("/proc").glob("[0-9]*/cmdline")
                if str(self.folder).encode() in read(file)]
        self.assertEqual(left, [])

    def test_a_second_part_is_added_and_two_files_can_be_joined(self):
        self.assertEqual(self.call("--tests").returncode, 0)
        self.assertEqual(self.call("--figures", rows=[tide()]).returncode, 0)
        text = self.output.read_text()
        self.assertIn("## Tests", text)
        self.assertIn("## Figures", text)
        both, first, second = self.found(), self.folder / "a.json", self.folder / "b.json"
        first.write_text(json.dumps({key: value for key, value in both.items() if key != "figures"}))
        second.write_text(json.dumps({key: value for key, value in both.items() if key != "tests"}))
        self.output.unlink()
        self.assertEqual(self.call("--join", first, second).returncode, 0)
        self.assertEqual(self.output.read_text(), text)
        # Of another commit they do not go together.
        self.assertEqual(self.call("--figures", "--commit", "def456", rows=[tide()]).returncode, 0)
        self.assertNotIn("tests", self.found())
        self.assertEqual(self.call("--join", first, self.output.with_suffix(".json")).returncode, 1)

    def test_results_go_where_out_says(self):
        command = self.command("--figures", rows=[tide()])
        at = command.index("--output")
        del command[at:at + 2]
        environment = dict(os.environ, OUT=str(self.folder / "there"))
        self.assertEqual(subprocess.run(command, capture_output=True, env=environment).returncode, 0)
        self.assertEqual(len(list((self.folder / "there").glob("*-gpu-acceptance.md"))), 1)

    # The table of the project itself

    def test_the_rows_of_the_project_can_be_run(self):
        ended = self.call("--dry-run")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertFalse(self.output.exists())
        for part in ("--batch 184 --precision bf16", "resnet50 1000 bf16 12GiB:", "PyTorch compiled",
                     "--batch-norm exact"):
            self.assertIn(part, ended.stdout)

    def test_a_table_that_cannot_hold_is_refused(self):
        for rows, reason in (([tide(), tide()], "two rows are called"),
                             ([tide(memory="66%")], "no unlimited row before"),
                             ([tide(), tide(memory="66%", steps=6)], "weights cannot be compared"),
                             ([torch("quick")], "a mode of PyTorch")):
            ended = self.call("--figures", rows=rows)
            self.assertEqual(ended.returncode, 1)
            self.assertIn(reason, ended.stderr)

    # The package

    @unittest.skipUnless(shutil.which("git") and shutil.which("strip"), "git and strip are not here")
    def test_a_package_has_stripped_programs_and_says_the_commit(self):
        def git(*arguments):
            command = ["git", "-c", "user.name=Someone", "-c", "user.email=someone@example.org", *arguments]
            return subprocess.run(command, cwd=source, check=True, capture_output=True, text=True).stdout.strip()

        source, build, package = (self.folder / name for name in ("source", "build", "package"))
        (source / "src").mkdir(parents=True)
        (source / "src/a.cpp").write_text("int a;\n")
        git("init", "--quiet")
        git("add", ".")
        git("commit", "--quiet", "--message", "one")
        command = [sys.executable, ROOT / "benchmarks/gpu_package", "--build", build, "--output", package]
        build.mkdir()
        (build / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\n")
        ended = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("tide is not there: build it with cmake --preset cuda", ended.stderr)
        for name in ("tide", "tests/gpu_test", "benchmarks/gpu_step", "benchmarks/gpu_tasks"):
            (build / name).parent.mkdir(exist_ok=True)
            shutil.copy("/bin/true", build / name)
        ended = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual((package / "commit.txt").read_text().strip(), git("rev-parse", "--short=12", "HEAD"))
        self.assertEqual(subprocess.run([package / "gpu_test"]).returncode, 0)
        # Changed since it was built: the commit alone would not be the truth.
        (source / "src/a.cpp").write_text("int b;\n")
        os.utime(source / "src/a.cpp", (time.time() + 100, time.time() + 100))
        self.assertEqual(subprocess.run(command, capture_output=True).returncode, 0)
        self.assertIn(", with changes, some sources newer than the programs", (package / "commit.txt").read_text())
        # Nothing else is overwritten.
        (package / "tide").unlink()
        self.assertEqual(subprocess.run(command, capture_output=True).returncode, 1)
        self.assertTrue((package / "gpu_test").exists())

    def test_programs_that_are_not_there_are_named(self):
        (self.folder / "gpu_test").unlink()
        ended = self.call("--tests")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("gpu_test is not there: make it with benchmarks/gpu_package", ended.stderr)


def read(file):
    try:
        return file.read_bytes()
    except OSError:
        return b""  # it ended meanwhile


def main():
    """All tests, several beside each other, since they mostly wait for programs; some by name as unittest has it."""
    if sys.argv[1:]:
        return unittest.main()
    tests = list(unittest.defaultTestLoader.loadTestsFromTestCase(GpuAcceptance))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda test: test.run(), tests))
    for result in results:
        for test, text in result.failures + result.errors:
            print(f"{test}\n{text}", file=sys.stderr)
    bad = sum(not result.wasSuccessful() for result in results)
    print(f"{len(tests)} tests, {bad} failed, {sum(len(result.skipped) for result in results)} skipped")
    return 1 if bad or not tests else 0


if __name__ == "__main__":
    sys.exit(main())

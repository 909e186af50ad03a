"""tide train on several ranks: ranks_test.py TIDE WHAT [REPEATS]

models   1, 2 and 4 ranks give one model: the same bits in a fixed order, nearly the same without
kills    a rank is killed at random moments; what is resumed each time ends with the model of a job that nobody hurt
lends    a rank trains with host memory of another to the same weights
words    what ranks refuse, in one line; what they say where one is asked to stop
"""
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

TIDE, WHAT = sys.argv[1:3]
REPEATS = int(sys.argv[3]) if len(sys.argv) > 3 else 10
JOB = ["train", "digits", "--lr", "0.02", "--json"]


def train(ranks, batch, *more, **settings):
    command = [TIDE, *JOB, "--devices", str(ranks), "--batch", str(batch // max(1, int(ranks))), *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **settings)


def trained(ranks, batch, *more):
    result = train(ranks, batch, *more)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def apart(common, first, second):
    """Two ranks that are told different things."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    job = [TIDE, *JOB, *common]
    command = ["mpirun", "--quiet", "--bind-to", "none", "-n", "1", *job, *first, ":", "-n", "1", *job, *second]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **allowed})


def models():
    fixed = ["--fixed-order", "--steps", "20"]
    alone = trained(1, 32, *fixed)
    for ranks in (2, 4):
        for more in ([], ["--memory", "420KiB", "--link", "200MB/s"]):
            together = trained(ranks, 32, *fixed, *more)
            assert together["weights_hash"] == alone["weights_hash"], (ranks, more, together, alone)
            assert together["loss"] == alone["loss"]
    whole = trained(2, 32, "--steps", "20", "--optimizer", "adam")
    for shard in ("optimizer", "parameters"):
        sharded = ["--shard", shard, "--least-to-shard", "1KiB", "--bucket", "4KiB"]
        together = trained(4, 32, *fixed, *sharded)
        assert together["weights_hash"] == alone["weights_hash"], (shard, together, alone)
        # Of two ranks' sums there is one order only.
        part = trained(2, 32, "--steps", "20", "--optimizer", "adam", *sharded)
        assert part["weights_hash"] == whole["weights_hash"] and part["accuracy"] == whole["accuracy"], (part, whole)
        assert part["peak_bytes"] < whole["peak_bytes"], (part, whole)
    swapping = ["--steps", "12", "--policy", "vdnn-conv", "--memory", "970KiB", "--link", "200MB/s", "--profile", "none"]
    swapped = {stagger: trained(2, 32, *swapping, "--stagger", stagger) for stagger in ("none", "paper", "auto")}
    assert len({job["weights_hash"] for job in swapped.values()}) == 1, swapped
    assert "swaps" not in swapped["none"] and swapped["paper"]["swaps"].startswith("paper"), swapped
    first = [trained(ranks, 32, "--steps", "1", "--sync-batch-norm")["loss"] for ranks in (1, 2, 4)]
    assert max(first) - min(first) < 1e-5, first


def lends():
    """One rank lends host memory to another: the same weights, and what is lent is what is borrowed."""
    fixed = ["--fixed-order", "--steps", "20"]
    alone = trained(1, 32, *fixed)
    little = ["--memory", "420KiB", "--host-memory", "300KiB"]
    for first, second in ((["--lend", "8MiB"], little), (little, ["--lend", "8MiB"])):
        result = apart([*fixed, "--batch", "16"], first, second)
        assert result.returncode == 0, result.stderr
        check_loan(json.loads(result.stdout), alone)
    # Device memory, which on the cpu is host memory too.
    together = trained(2, 32, *fixed, "--memory", "420KiB", "--lend-device", "1:8MiB", "--peer-rate", "20GB/s")
    assert together["weights_hash"] == alone["weights_hash"], (together, alone)
    assert 0 < together["lent_device_bytes"] == together["borrowed_device_bytes"], together
    assert 0 < together["pushed_to_lenders_bytes"] <= together["pulled_from_lenders_bytes"], together
    # All are told the same: the one that lends has a disk instead.
    with tempfile.TemporaryDirectory() as folder:
        check_loan(trained(2, 32, *fixed, *little, "--lend", "0:8MiB", "--spill", folder), alone)


def check_loan(together, alone):
    assert together["weights_hash"] == alone["weights_hash"], (together, alone)
    assert 0 < together["lent_bytes"] == together["borrowed_bytes"] <= 8 << 20, together
    assert 0 < together["sent_to_lenders_bytes"] <= together["got_from_lenders_bytes"], together


def children_of(pid):
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True)
    return [int(child) for child in found.stdout.split()]


def ranks_of(job):
    """The ranks of a job, once they are there: the children of its launcher."""
    for _ in range(200):
        found = [rank for launcher in children_of(job.pid) for rank in children_of(launcher)]
        if len(found) >= 2:
            return found
        time.sleep(0.02)
    return []


def wait_for_steps(job):
    """What a job has printed until its first steps are done."""
    errors = ""
    while not re.search(r"^step \d", errors, re.M) and (line := job.stderr.readline()):
        errors += line
    return errors


def steps_in(file):
    """How far the job of a checkpoint was."""
    if not os.path.exists(file):
        return 0
    with open(file, "rb") as data:
        header = json.loads(data.read(int.from_bytes(data.read(8), "little")))
    return int(header["__metadata__"]["steps"])


def kills():
    most = 200 * REPEATS
    steps = ["--steps", str(most), "--save-every", "7"]
    with tempfile.TemporaryDirectory() as folder:
        whole = trained(2, 32, "--save", f"{folder}/whole.safetensors", *steps)
        file = f"{folder}/hurt.safetensors"
        for kill in range(REPEATS):
            before = steps_in(file)
            resume = ["--resume", file] if before > 0 else []
            # What each rank keeps of the state may be another thing each time.
            shard = ["--shard", random.choice(("none", "optimizer", "parameters")), "--least-to-shard", "1KiB"]
            command = [TIDE, *JOB, "--devices", "2", "--batch", "16", "--save", file, *steps, *resume, *shard]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
                ranks = ranks_of(job)
                # The first time so early that there is no checkpoint yet, or hardly.
                errors = wait_for_steps(job) if kill == 0 else ""
                moment = before + random.randrange(10, 100) if kill > 0 else 0
                while steps_in(file) < moment and job.poll() is None:
                    time.sleep(0.001)
                time.sleep(random.uniform(0, 0.01))
                assert job.poll() is None, f"kill {kill}: too late, {job.communicate()}"
                os.kill(random.choice(ranks), signal.SIGKILL)
                errors += job.communicate(timeout=60)[1]
            lines = [line for line in errors.splitlines() if line.startswith("tide:")]
            assert job.returncode != 0, errors
            assert len(lines) == 1 and re.search(r"rank \d on host \S+ is dead during .\w+", lines[0]), errors
            print(f"kill {kill}: from step {before}, exit code {job.returncode} {lines}", flush=True)
        # On another number of ranks, with as large a batch of all: near the same.
        resume = ["--resume", file] if os.path.exists(file) else []
        ended = trained(2, 32, "--save", file, *steps, *resume)
        assert ended["steps"] == whole["steps"] and ended["weights_hash"] == whole["weights_hash"], (ended, whole)
        more = trained(4, 32, "--resume", f"{folder}/whole.safetensors", "--steps", str(most + 10))
        assert more["steps"] == most + 10, more


def stops():
    """A rank, or the command itself, is asked to stop: all end after the present step, with a checkpoint."""
    for whom in (lambda job, ranks: os.kill(random.choice(ranks), signal.SIGTERM),
                 lambda job, ranks: os.kill(job.pid, signal.SIGINT),
                 lambda job, ranks: os.kill(job.pid, signal.SIGTERM)):
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/stopped.safetensors"
            command = [TIDE, *JOB, "--devices", "2", "--batch", "16", "--steps", "100000000", "--save", file]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
                ranks = ranks_of(job)
                errors = wait_for_steps(job)
                whom(job, ranks)
                text, more = job.communicate(timeout=60)
            errors += more
            lines = [line for line in errors.splitlines() if line.startswith("tide:")]
            assert job.returncode == 130 and json.loads(text)["ranks"] == 2, (job.returncode, errors)
            assert len(lines) == 1 and re.search(r"interrupted after step \d+; go on with --resume", lines[0]), errors
            assert os.path.exists(file)
    # Whoever asks twice does not want to wait. Killed, the command takes its ranks with it.
    slow = [TIDE, "train", "digits", "--devices", "2", "--link", "1kB/s", "--policy", "vdnn-conv", "--profile", "none"]
    for signals, code in (((signal.SIGINT, signal.SIGINT), 130), ((signal.SIGKILL,), -signal.SIGKILL)):
        with subprocess.Popen(slow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
            ranks = ranks_of(job)
            for line in job.stdout:
                if line.startswith("predicted"):
                    break
            for one in signals:
                job.send_signal(one)
                time.sleep(0.2)
            job.communicate(timeout=60)
            assert job.returncode == code, job.returncode
            for _ in range(100):
                if not any(os.path.exists(f"/proc/{rank}") for rank in ranks):
                    break
                time.sleep(0.1)
            assert not any(os.path.exists(f"/proc/{rank}") for rank in ranks), ranks


def differs():
    """What is each rank's own affair may differ; all else is refused by name, and nobody waits for the others."""
    common = ["--batch", "16", "--steps", "3"]
    same = trained(2, 32, "--steps", "3")["weights_hash"]
    for own in (["--threads", "1"], ["--policy", "vdnn-conv", "--guard"]):
        for first, second in ((own, []), ([], own)):
            result = apart(common, first, second)
            assert result.returncode == 0 and json.loads(result.stdout)["weights_hash"] == same, (own, result)
    with tempfile.TemporaryDirectory() as folder:
        for own, text in ((["--fixed-order"], "the order of sums"), (["--share-devices"], "with devices shared"),
                          (["--save", f"{folder}/a"], "one to write"),
                          (["--resume", f"{folder}/a"], "one to go on from")):
            first, second = random.choice(((own, []), ([], own)))
            result = apart([*common, "--shard", "parameters"], first, second)
            lines = [line for line in result.stderr.splitlines() if line.startswith("tide:")]
            assert result.returncode == 1 and len(lines) == 1 and text in lines[0], (own, result)


def words():
    def refused(text, *arguments):
        result = train(2, 32, *arguments)
        lines = [line for line in result.stderr.splitlines() if line.startswith("tide:")]
        assert result.returncode not in (0, 130) and len(lines) == 1 and text in lines[0], result

    for none in ("0", "-1", "257"):
        result = train(none, 32)
        assert result.returncode == 1 and f"--devices {none} is not possible" in result.stderr, result
    for none in ("0", "-1"):
        refused("at least one leaf", f"--fixed-order={none}")
    # A log has lines, though launchers give their ranks terminals.
    plain = subprocess.run([TIDE, "train", "digits", "--devices", "2", "--steps", "3"], capture_output=True, text=True)
    assert plain.returncode == 0 and "step 3/3" in plain.stdout and "\033" not in plain.stdout, plain
    refused("cannot be divided among", "--fixed-order=1")
    refused("cannot be cut into 6 equal parts", "--fixed-order=6")
    refused("unknown --reduce-type", "--reduce-type", "fp64")
    refused("at least 1 byte", "--bucket", "0")
    refused("thing to shard", "--shard", "weights")
    refused("do not go together", "--shard", "parameters", "--allow", "reordered")
    refused("does not fit", "--memory", "1KiB")
    refused("cannot be read", "--resume", "/nowhere")
    refused("needs --save", "--save-every", "3")
    refused("'2:1MiB' names no rank; there are 0 to 1", "--lend", "2:1MiB")
    refused("not a size", "--lend", "0:much")
    refused("names no rank", "--lend-device", "x:1MiB")
    refused("names rank 0 twice", "--lend", "0:1MiB,0:2MiB")
    refused("give that one, too", "--topology", "8xh100-nvlink")
    refused("too short", "--hang-timeout", "0.5")
    refused("there is no folder /nowhere", "--save", "/nowhere/x")
    refused("is not a speed", "--peer-rate", "fast")
    refused("swaps no layers that could be staggered", "--stagger", "paper", "--policy", "liveness")
    refused("unknown way to stagger", "--stagger", "sideways")
    refused("nowhere", "--stagger", "auto", "--topology", "nowhere")
    result = train(2, 4000)
    assert result.returncode == 1 and "larger than the training set" in result.stderr, result
    differs()
    stops()


{"models": models, "lends": lends, "kills": kills, "words": words}[WHAT]()

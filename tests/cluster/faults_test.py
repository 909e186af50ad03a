"""Jobs in which a rank fails: faults_test.py MPIRUN MPI_RANKS [REPEATS] [HANG]

Each fault, at a random moment, on any rank; or, so many times, on rank 0 and on another: the job has to end, by itself, with exactly one line that names
the rank and what it was doing. How long that takes is printed, not judged.
"""
import random
import re
import signal
import subprocess
import sys
import time

RANKS = 4
MPIRUN, PROGRAM = sys.argv[1:3]
REPEATS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
HANG = sys.argv[4] if len(sys.argv) > 4 else "4"
WORDS = {
    "kill": r"is dead",
    "stop": r"has been silent for \d+ s \(stopped, or its network is gone\)",
    "loop": r"has made no progress for \d+ s",
    "error": r"has failed",
    "term": r"was asked to stop",
}
WHERE = r" during '(conv1 forward|sum of gradients)' of step \d+; all ranks end; resume with --resume here"


def run(fault, rank):
    """The job's exit code, lines of ours, and the time it took from the fault to its end."""
    moment = random.uniform(0.3, 2)
    command = [MPIRUN, "-q", "-n", str(RANKS), PROGRAM, "watched", fault, str(rank), f"{moment:.3f}", HANG]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100)
    ended = time.time()
    began = re.search(r"fault at ([\d.]+)", result.stdout)
    lines = [line for line in result.stderr.splitlines() if line.startswith("tide:")]
    return result, lines, ended - float(began.group(1)) if began else None


def check(fault, rank):
    result, lines, seconds = run(fault, rank)
    told = f"{fault} of rank {rank}: exit code {result.returncode}, {result.stderr!r}"
    assert result.returncode != 0 and seconds is not None, told
    assert len(lines) == 1, told
    assert fault != "error" or "mpi_ranks: there is no file\n" in result.stderr, told  # its own words
    operation = WHERE.replace("(conv1 forward|sum of gradients)", "conv1 forward") if fault == "loop" else WHERE
    assert re.fullmatch(rf"tide: rank {rank} on host \S+ {WORDS[fault]}{operation}", lines[0]), told
    print(f"{seconds:6.2f} s  {lines[0]}", flush=True)


def check_launcher():
    """A job that is stopped as a whole has no rank to blame."""
    command = [MPIRUN, "-q", "-n", str(RANKS), PROGRAM, "watched", "none", "0", "60", HANG]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(random.uniform(1.5, 3))
    job.send_signal(signal.SIGTERM)
    _, errors = job.communicate(timeout=100)
    assert job.returncode != 0 and "tide:" not in errors, errors


def main():
    result, lines, _ = run("none", 0)
    assert result.returncode == 0 and not lines, result.stderr
    check_launcher()
    if REPEATS == 0:
        for fault in WORDS:
            check(fault, random.randrange(RANKS))
    for _ in range(REPEATS):
        for fault in WORDS:
            for rank in (0, random.randrange(1, RANKS)):
                check(fault, rank)


main()

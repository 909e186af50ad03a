"""Two hosts in one machine: two_hosts_test.py MPIRUN TIDE MPI_RANKS

Each host is a set of namespaces (network, host name, mounts) that a sleeping process holds; a pair of virtual network
cards joins them. They have no names outside, so that two runs do not meet, and are gone when their last process is:
this script ends all of them, also when it is interrupted (not by SIGKILL). Needs root, who may make them; elsewhere the
test is skipped.

models   a rank on each host trains to the bits of one host
loans    the hosts lend each other memory
lends    a rank on one host trains with memory of the other, to the same bits
cut      the link goes down in the middle of a job: both sides end, each with one line
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MPIRUN, TIDE, MPI_RANKS = map(os.path.abspath, sys.argv[1:4])
SKIPPED = 77
NAMES = ("tide-a", "tide-b")
ADDRESSES = ("10.97.0.1", "10.97.0.2")
CARD = "tide0"
LONGEST = 60  # seconds that any of this may take; what it takes is printed, not judged


def stop_by_signal(number, _):
    sys.exit(128 + number)  # by way of all __exit__


class Host:
    def __init__(self, name):
        self.name = name
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--mount", "sleep", "infinity"]
        self.holder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        own = os.readlink("/proc/self/ns/uts")
        while self.holder.poll() is None and self.uts() == own:
            time.sleep(0.01)
        if self.holder.poll() is not None:
            raise PermissionError(self.holder.stderr.read().strip())

    def uts(self):
        # The last that unshare makes is all that matters: it makes them in one call.
        return os.readlink(f"/proc/{self.holder.pid}/ns/uts")

    def enter(self, *command):
        return ["nsenter", "--target", str(self.holder.pid), "--net", "--uts", "--mount", *command]

    def run(self, *command):
        done = subprocess.run(self.enter(*command), capture_output=True, text=True)
        if done.returncode != 0:
            raise PermissionError(f"{' '.join(command)}: {done.stderr.strip()}")

    def processes(self, command=None):
        """Those that run here, by what they are called."""
        network = os.readlink(f"/proc/{self.holder.pid}/ns/net")
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/comm") as file:
                    called = file.read().strip()
                is_here = os.readlink(f"/proc/{pid}/ns/net") == network
            except OSError:
                continue  # it has just ended
            if is_here and (called == command or not command and int(pid) != self.holder.pid):
                found.append(int(pid))
        return found

    def end(self):
        if self.holder.poll() is None:
            for pid in self.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.holder.kill()
        self.holder.wait()


class TwoHosts:
    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="tide-two-hosts-")
        self.hosts = []
        try:
            for name in NAMES:
                self.hosts.append(Host(name))
            self.join()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            host.end()
        shutil.rmtree(self.folder)

    def join(self):
        first, second = self.hosts
        first.run("ip", "link", "add", CARD, "type", "veth", "peer", "name", CARD, "netns", str(second.holder.pid))
        with open(f"{self.folder}/hosts", "w") as file:
            file.write("127.0.0.1 localhost\n")
            file.writelines(f"{address} {name}\n" for address, name in zip(ADDRESSES, NAMES))
        for host, address in zip(self.hosts, ADDRESSES):
            host.run("hostname", host.name)
            host.run("mount", "--bind", f"{self.folder}/hosts", "/etc/hosts")
            host.run("ip", "address", "add", f"{address}/24", "dev", CARD)
            for card in ("lo", CARD):
                host.run("ip", "link", "set", card, "up")
        # What mpirun calls instead of ssh: agent HOST COMMAND.
        self.agent = f"{self.folder}/agent"
        with open(self.agent, "w") as file:
            file.write(f'#!/bin/sh\nshift\nexec {" ".join(second.enter("sh", "-c"))} "$*"\n')
        os.chmod(self.agent, 0o755)

    def job(self, *program):
        """A rank on each host. What they write as errors is in a file on each host."""
        settings = {"plm_rsh_agent": self.agent, "btl": "tcp,self", "btl_tcp_if_include": CARD,
                    "oob_tcp_if_include": CARD}
        command = [MPIRUN, "-q", "-n", "2", "--host", ",".join(NAMES), "--bind-to", "none", "--allow-run-as-root"]
        for name, value in settings.items():
            command += ["--mca", name, value]
        own_file = f'exec "$0" "$@" 2>{self.folder}/errors-$(hostname)'
        return self.hosts[0].enter(*command, "sh", "-c", own_file, *program)

    def errors(self, host):
        try:
            with open(f"{self.folder}/errors-{host.name}") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def run(self, *program):
        done = subprocess.run(self.job(*program), capture_output=True, text=True, timeout=LONGEST)
        told = [done.stderr, *map(self.errors, self.hosts)]
        assert done.returncode == 0, told
        return done.stdout


def models(two):
    job = [TIDE, "train", "digits", "--lr", "0.02", "--json", "--fixed-order", "--steps", "20", "--batch"]
    alone = subprocess.run([*job, "32"], capture_output=True, text=True, timeout=LONGEST)
    assert alone.returncode == 0, alone.stderr
    expected, found = json.loads(alone.stdout), json.loads(two.run(*job, "16"))
    assert found["ranks"] == 2 and found["steps"] == 20, found
    assert found["weights_hash"] == expected["weights_hash"], (found, expected)
    print(f"models: weights {found['weights_hash']} on one host and on two", flush=True)


def lends(two):
    """Each rank is short of host memory: one has a disk, the other the memory of the first."""
    job = [TIDE, "train", "digits", "--lr", "0.02", "--json", "--fixed-order", "--steps", "20", "--batch"]
    alone = subprocess.run([*job, "32"], capture_output=True, text=True, timeout=LONGEST)
    assert alone.returncode == 0, alone.stderr
    little = ["--memory", "420KiB", "--host-memory", "300KiB", "--spill", two.folder]
    for rank in (0, 1):
        found = json.loads(two.run(*job, "16", *little, "--lend", f"{rank}:8MiB", "--lend-rate", "2GB/s"))
        assert found["weights_hash"] == json.loads(alone.stdout)["weights_hash"], found
        assert 0 < found["lent_bytes"] == found["borrowed_bytes"] < found["got_from_lenders_bytes"], found
        print(f"lends: {found['lent_bytes']} bytes of {NAMES[rank]}, weights {found['weights_hash']}", flush=True)


def loans(two):
    text = two.run(MPI_RANKS, "loans")
    for rank, name in enumerate(NAMES):
        assert f"rank {rank} on {name} has borrowed" in text, text
    print("loans: bytes lent by each host came back", flush=True)


def wait_until(condition, what):
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < LONGEST, what
        time.sleep(0.02)
    return time.monotonic() - began


def end_of(launcher, began):
    """mpirun waits for its own helper on the other side, for longer than anybody would."""
    for asks in range(2):
        try:
            launcher.communicate(timeout=3)
            assert launcher.returncode != 0
            after = f"{time.monotonic() - began:.1f} s, {'asked' if asks else 'by itself'}"
            return f"mpirun ended after {after}, with exit code {launcher.returncode}"
        except subprocess.TimeoutExpired:
            launcher.terminate()
    launcher.kill()
    return "mpirun did not end when asked, and was killed"


def cut(two):
    job = two.job(TIDE, "train", "digits", "--json", "--batch", "16", "--steps", "100000000")
    launcher = subprocess.Popen(job, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        def has_begun():
            return re.search(r"^step [1-9]", two.errors(two.hosts[0]), re.M) or launcher.poll() is not None
        wait_until(has_begun, "the job does not begin")
        time.sleep(1)  # some steps, of which the other side hears
        assert all(len(host.processes("tide")) == 1 for host in two.hosts), list(map(two.errors, two.hosts))
        two.hosts[0].run("ip", "link", "set", CARD, "down")
        began = time.monotonic()
        ended = {}

        def have_ended():
            for host in two.hosts:
                if host.name not in ended and not host.processes("tide"):
                    ended[host.name] = time.monotonic() - began
            return len(ended) == len(two.hosts)
        wait_until(have_ended, f"ranks do not end: {ended}")
        last = end_of(launcher, began)
    finally:
        launcher.kill()  # does nothing where it has ended; the rest is ended with its host
    for host, other in zip(two.hosts, (1, 0)):
        lines = [line for line in two.errors(host).splitlines() if line.startswith("tide:")]
        assert len(lines) == 1, (host.name, two.errors(host))
        assert re.match(rf"tide: rank {other} on host {NAMES[other]} has been silent for \d+ s .* of step \d+;", lines[0]), lines
        print(f"cut: {host.name} ended after {ended[host.name]:.1f} s: {lines[0]}")
    print(f"cut: {last}", flush=True)


def main():
    if os.geteuid() != 0:
        print("skipped: two hosts in one machine need root")
        return SKIPPED
    missing = [tool for tool in ("ip", "nsenter", "setpriv", "unshare") if not shutil.which(tool)]
    if missing:
        print(f"skipped: there is no {', '.join(missing)}: install iproute2 and util-linux")
        return SKIPPED
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop_by_signal)
    try:
        with TwoHosts() as two:
            for show in (models, loans, lends, cut):
                show(two)
    except PermissionError as error:
        print(f"skipped: no hosts can be made here: {error}")
        return SKIPPED
    return 0


sys.exit(main())

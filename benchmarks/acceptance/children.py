"""Programs run one at a time or beside each other, each with a limit to its time; none outlives its limit."""
import dataclasses
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time


@dataclasses.dataclass
class Ended:
    status: int  # below 0: the signal that ended it
    output: str
    errors: str
    seconds: float
    timed_out: bool = False


class Children:
    """Starts programs in process groups of their own, so that one that hangs is ended with all that it started."""

    def __init__(self):
        self._running = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, command, seconds, environment=None, directory=None):
        # Files, not pipes: what is written before a kill is there, and no grandchild keeps a reader waiting.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            start = time.monotonic()
            try:
                with self._lock:
                    if self._stopped:
                        return Ended(-signal.SIGTERM, "", "stopped", 0, timed_out=True)
                    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                                             env=environment, cwd=directory, process_group=0)
                    self._running.add(child)
            except OSError as error:
                return Ended(127, "", f"{command[0]}: {error.strerror}", 0)
            timed_out = False
            try:
                child.wait(timeout=max(seconds, 0.1))
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                with self._lock:
                    end_group(child)
                    self._running.discard(child)
            child.wait()
            return Ended(child.returncode, text_of(output), text_of(errors), time.monotonic() - start, timed_out)

    def stop(self):
        """Ends what runs and starts nothing more."""
        with self._lock:
            self._stopped = True
            for child in self._running:
                end_group(child)


def end_group(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of it is gone


def text_of(file):
    file.seek(0)
    return file.read().decode(errors="replace")


def tide_environment(binaries, cache):
    """What Tidepool's programs need and PyTorch must not have: the folders of CUDA's and of carried libraries.

    The cache of measured times is an empty one, so that predictions rest on what this run has measured.
    """
    environment = dict(os.environ, XDG_CACHE_HOME=str(cache), OMP_WAIT_POLICY="PASSIVE")
    folders = [pathlib.Path("/usr/local/cuda/lib64"), pathlib.Path(binaries).resolve() / "lib"]
    paths = [str(folder) for folder in folders if folder.is_dir()] + [os.environ.get("LD_LIBRARY_PATH", "")]
    if any(paths):
        environment["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
    return environment

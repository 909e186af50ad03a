"""PyTorch's wheels bring CUDA's libraries along, by the names that those of the machine have. A process has one library of
a name, the first that is loaded, and PyTorch does without none that is newer. So where PyTorch is installed, tidepool takes
PyTorch's, whichever of the two is imported first."""

import ctypes
import importlib.util
import pathlib
import sys

NEEDED = ("libcublasLt", "libcudnn", "libnccl")


def share_with_torch():
    """To be called before tidepool's own library is loaded. Loads nothing where PyTorch has none of its own."""
    if "torch" in sys.modules or importlib.util.find_spec("torch") is None:
        return
    for folder in dict.fromkeys(sys.path):
        for name in NEEDED:
            for path in sorted(pathlib.Path(folder or ".", "nvidia").glob(f"*/lib/{name}.so.*")):
                try:
                    ctypes.CDLL(str(path))
                except OSError:
                    pass  # of another machine or release: then it is PyTorch that has to say so

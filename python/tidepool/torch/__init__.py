"""PyTorch modules within a device-memory budget. See docs/pytorch.md.

    trainer = tidepool.torch.compile(model, loader, loss=criterion, memory="8GiB", optimizer=optimizer)
    trainer.fit(loader, epochs=10)  # the weights are in `model` then
"""

from .. import Error

try:
    import torch
except ImportError as error:
    raise ImportError(f"tidepool.torch needs PyTorch: pip install torch ({error})") from error

if tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) < (2, 5):
    raise Error(f"tidepool.torch needs PyTorch 2.5 or newer, and this is {torch.__version__}: pip install -U torch")

from .compiled import Compiled, compile
from .explanation import Explanation, explain
from .imported import Traced, trace

__all__ = ["Compiled", "Explanation", "Traced", "compile", "explain", "trace"]

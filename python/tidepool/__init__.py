"""Trains neural networks within a device-memory budget that you give it. See docs/python.md.

    import tidepool

    net = tidepool.network("resnet50")
    print(tidepool.plan(net, batch=64, memory="3GiB"))
    session = tidepool.Session(net, batch=64, memory="3GiB")
    session.step(images, labels, learning_rate=0.05).loss
"""

from . import libraries

libraries.share_with_torch()
try:
    from . import _tidepool
except ImportError as error:
    raise ImportError(
        f"tidepool's library cannot be loaded: {error}; install what it lacks (packages.txt lists Debian's packages), "
        f"or build it again with this Python: pip install .") from error

from ._tidepool import Data, Error, Infeasible, Network, Plan, __version__, devices, models, policies
from .networks import from_graph, network
from .planning import Comparison, compare, fit, plan
from .session import Evaluation, Metric, Session

__all__ = ["Comparison", "Data", "Error", "Evaluation", "Infeasible", "Metric", "Network", "Plan", "Session",
           "__version__", "compare", "devices", "fit", "from_graph", "models", "network", "plan", "policies"]

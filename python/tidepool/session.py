"""Training a network within a budget: steps on arrays, or whole epochs of data that the library reads."""

from __future__ import annotations

import os
import typing

from . import _tidepool
from ._tidepool import Data, Network, Plan
from .checks import a_network, whole


class Metric(typing.NamedTuple):
    """What one step says of its batch, before its update."""

    loss: float
    correct: float
    answers: float

    @property
    def accuracy(self) -> float:
        return self.correct / self.answers if self.answers else 0.0


class Evaluation(typing.NamedTuple):
    loss: float
    accuracy: float


class Session:
    """A network, its parameters and its planned steps, in memory that is taken once.

    memory: the device's budget ("2GiB", bytes, "auto"). Options are those of `tide train`: backend ("cpu", "cuda"),
    precision, policy, host_memory, optimizer, momentum, weight_decay, clip, seed, threads ... Throws
    tidepool.Infeasible where the budget is too small. Steps of another batch than `batch`, such as a last one that is
    smaller, are planned when they first come; `batches` plans them at once. answers: predict() is wanted.
    """

    def __init__(self, network: Network, batch: int = 32, memory: str | int | None = None, *,
                 batches: typing.Sequence[int] = (), evaluation_batch: int | None = None, answers: bool | None = None,
                 **options: typing.Any):
        self.network = a_network(network)
        self.batch = whole("batch", batch)
        if answers is None:
            answers = not network.has_loss
        self._options = {"memory": memory, **options}
        training = [self.batch, *(whole("batches", other) for other in batches)] if network.has_loss else []
        evaluation = [] if evaluation_batch is None and training else [
            whole("evaluation_batch", evaluation_batch or batch)]
        self._session = _tidepool.Session(network, training, evaluation, answers, self._options)

    def step(self, samples: typing.Any, targets: typing.Any, learning_rate: float) -> Metric:
        """One training step on a batch: forward, backward, update.

        samples: a numpy array, or one that DLPack hands over, of batch x channels x height x width, float32, float64
        or uint8, with any strides. It is read as it lies, straight into the step's input. targets: classes as whole
        numbers, or numbers; of several losses a list, or a dict by loss (network.losses).
        """
        return Metric(*self._session.step(samples, targets, learning_rate))

    def evaluate(self, samples: typing.Any, targets: typing.Any, batch: int | None = None) -> Evaluation:
        """Loss and accuracy, forward only, in batches of at most `batch`."""
        loss, accuracy, _ = self._session.evaluate(samples, targets, batch or self.batch, False)
        return Evaluation(loss, accuracy)

    def predict(self, samples: typing.Any, batch: int | None = None) -> typing.Any:
        """What the network answers: an array, or where there are several a dict by layer. Losses answer
        probabilities. Needs answers=True."""
        _, _, answers = self._session.evaluate(samples, None, batch or self.batch, True)
        return next(iter(answers.values())) if len(answers) == 1 else answers

    def train(self, data: str | os.PathLike[str] | Data, *, epochs: int = 1, steps: int = 0,
              learning_rate: float | None = None, schedule: str = "constant", warmup: int = 0, step_every: int = 0,
              step_factor: float = 0.1, validation: float = 0.2,
              on_step: typing.Callable[[dict], object] | None = None,
              on_epoch: typing.Callable[[dict], object] | None = None) -> dict:
        """Epochs of shuffled batches of data that the library reads (docs/data.md), with the program's defaults.

        on_step and on_epoch are called with a dict of what happened; what they throw, Ctrl-C included, ends the
        training between two steps, and the session can go on.
        """
        if not isinstance(data, Data):
            data = self.data(data, validation=validation)
        if learning_rate is None:
            learning_rate = _tidepool.usual_rate(self.network, self.batch, self._options)
        return _tidepool.train(self._session, data, batch=self.batch, epochs=epochs, steps=steps,
                               learning_rate=learning_rate, schedule=schedule, warmup=warmup, step_every=step_every,
                               step_factor=step_factor, on_step=on_step, on_epoch=on_epoch)

    def data(self, name: str | os.PathLike[str], *, validation: float = 0.2, synthetic_size: int = 0) -> Data:
        """Data of docs/data.md as this network takes it: a folder, a file, "digits" or "synthetic"."""
        seed = self._options.get("seed")
        return _tidepool.open_data(self.network, os.fspath(name), self.batch, validation, 1 if seed is None else seed,
                                   synthetic_size)

    def evaluate_data(self, data: Data) -> Evaluation:
        """Loss and accuracy on what is held out of the data."""
        row = _tidepool.evaluate_data(self._session, data, self.batch)
        return Evaluation(row["loss"], row["accuracy"])

    def weights(self) -> dict[str, typing.Any]:
        """Parameters and running statistics as numpy arrays, by their names (network.weight_names); copies."""
        return self._session.weights()

    def set_weights(self, weights: typing.Mapping[str, typing.Any]) -> None:
        """Takes over all that are given, by name; the others stay."""
        self._session.set_weights(dict(weights))

    def moments(self) -> dict[str, dict[str, typing.Any]]:
        """The optimizer's state as numpy arrays: {array: {"first_moment": ..., "second_moment": ...}}."""
        return self._session.moments()

    def set_moments(self, moments: typing.Mapping[str, dict], steps_done: int) -> None:
        self._session.set_moments(dict(moments), steps_done)

    def save(self, path: str | os.PathLike[str]) -> None:
        """A checkpoint with all that training goes on from; `tide train --resume` reads it, too."""
        self._session.save(os.fspath(path))

    def load(self, path: str | os.PathLike[str], *, with_optimizer: bool = True) -> None:
        self._session.load(os.fspath(path), with_optimizer)

    def save_weights(self, path: str | os.PathLike[str]) -> None:
        """Parameters and statistics alone, as safetensors, by the names of network.weight_names."""
        self._session.save_weights(os.fspath(path))

    def plan(self, batch: int | None = None, *, training: bool = True) -> Plan:
        """How a step of this session runs."""
        return self._session.plan(batch or self.batch, training)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes taken: device_bytes, host_bytes, disk_bytes; measured_bytes: the highest address so far."""
        return self._session.memory

    @property
    def steps_done(self) -> int:
        return self._session.steps_done

    @property
    def weights_hash(self) -> str:
        """A text that is equal only for equal weights, bit for bit; the program prints the same."""
        return self._session.weights_hash

    def __repr__(self) -> str:
        return f"<tidepool.Session {self.network.name} at batch {self.batch}, {self.steps_done} steps done>"



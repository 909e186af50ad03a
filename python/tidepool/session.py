"""Training a network within a budget: steps on arrays, or whole epochs of data that the library reads."""

from __future__ import annotations

import os
import typing
import warnings

from . import _tidepool
from ._tidepool import Data, Error, Network, Plan
from .checks import a, a_dict, a_network, callback, flag, number, numbers, path, text, whole, wholes


class Metric(typing.NamedTuple):
    """What one step says of its batch, before its update."""

    loss: float
    correct: float
    answers: float

    @property
    def accuracy(self) -> float | None:
        """None where no answer can be right, as to numbers."""
        return self.correct / self.answers if self.answers else None


class Evaluation(typing.NamedTuple):
    loss: float
    accuracy: float | None  # as in Metric


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
        flag("answers", answers)
        training = [self.batch, *wholes("batches", batches)] if network.has_loss else []
        evaluation = [] if evaluation_batch is None and training else [
            whole("evaluation_batch", evaluation_batch or batch)]
        self._session = _tidepool.Session(network, training, evaluation, answers, self._options)

    def step(self, samples: typing.Any, targets: typing.Any, learning_rate: float) -> Metric:
        """One training step on a batch: forward, backward, update.

        samples: a numpy array, or one that DLPack hands over, of batch x channels x height x width, float32, float64
        or uint8, with any strides. It is read as it lies, straight into the step's input. targets: classes as whole
        numbers, or numbers; of several losses a list, or a dict by loss (network.losses).
        """
        rate = number("learning_rate", learning_rate)
        return Metric(*self._session.step(given("the samples", samples), targets, rate))

    def evaluate(self, samples: typing.Any, targets: typing.Any, batch: int | None = None) -> Evaluation:
        """Loss and accuracy, forward only, in batches of at most `batch`."""
        loss, accuracy, _ = self._session.evaluate(given("the samples", samples), targets, self.batch_of(batch), False)
        return Evaluation(loss, accuracy)

    def predict(self, samples: typing.Any, batch: int | None = None) -> typing.Any:
        """What the network answers: an array, or where there are several a dict by layer. Losses answer
        probabilities. Needs answers=True."""
        _, _, answers = self._session.evaluate(given("the samples", samples), None, self.batch_of(batch), True)
        return next(iter(answers.values())) if len(answers) == 1 else answers

    def train(self, data: str | os.PathLike[str] | Data, *, epochs: int = 1, steps: int = 0,
              learning_rate: float | None = None, schedule: str = "constant", warmup: int = 0, step_every: int = 0,
              step_factor: float = 0.1, on_step: typing.Callable[[dict], object] | None = None,
              on_epoch: typing.Callable[[dict], object] | None = None, **reading: typing.Any) -> dict:
        """Epochs of shuffled batches of data that the library reads (docs/data.md), with the program's defaults.

        Further words are those of data(): validation, crop, flip, on_bad_file ... on_step and on_epoch are called with
        a dict of what happened; what they throw, Ctrl-C included, ends the training between two steps, and the session
        can go on.
        """
        if not isinstance(data, Data):
            data = self.data(data, **known(reading))
        elif reading:
            raise Error(f"{next(iter(reading))}= is for data that is opened here; give it to data() instead")
        if learning_rate is None:
            learning_rate = _tidepool.usual_rate(self.network, self.batch, self._options)
        words = {"epochs": whole("epochs", epochs), "steps": whole("steps", steps), "warmup": whole("warmup", warmup),
                 "step_every": whole("step_every", step_every)}
        if words["epochs"] < 1:
            raise Error(f"epochs={epochs} is not possible; train for at least 1")
        for word, value in words.items():
            if value < 0:
                raise Error(f"{word}={value} is negative")
        return reads(data, lambda: _tidepool.train(
            self._session, data, batch=self.batch, **words, learning_rate=number("learning_rate", learning_rate),
            schedule=text("schedule", schedule), step_factor=number("step_factor", step_factor),
            on_step=callback("on_step", on_step), on_epoch=callback("on_epoch", on_epoch)))

    def data(self, name: str | os.PathLike[str], *, validation: float = 0.2, synthetic_size: int = 0,
             crop: str | None = None, flip: bool | None = None, jitter: float = 0.0, mixup: float = 0.0,
             plain: bool = False, mean: float | typing.Sequence[float] | None = None,
             deviation: float | typing.Sequence[float] | None = None, resize: float | None = None, workers: int = 0,
             on_bad_file: str = "refuse") -> Data:
        """Data of docs/data.md as this network takes it: a folder, a file, "digits" or "synthetic". The words are those
        of the program: crop="padded" is its --crop padded."""
        seed = self._options.get("seed")
        return reads(None, lambda: _tidepool.open_data(
            self.network, path("the data", name), self.batch, validation=number("validation", validation),
            seed=1 if seed is None else whole("seed", seed), synthetic_size=whole("synthetic_size", synthetic_size),
            crop="" if crop is None else text("crop", crop), flip=None if flip is None else flag("flip", flip),
            jitter=number("jitter", jitter), mixup=number("mixup", mixup), plain=flag("plain", plain),
            mean=numbers("mean", mean), deviation=numbers("deviation", deviation),
            resize=0.0 if resize is None else number("resize", resize), workers=whole("workers", workers),
            on_bad_file=text("on_bad_file", on_bad_file)))

    def evaluate_data(self, data: Data) -> Evaluation:
        """Loss and accuracy on what is held out of the data."""
        if not isinstance(data, Data):
            raise Error(f"the data is {a(data)}; give what session.data() opens")
        row = reads(data, lambda: _tidepool.evaluate_data(self._session, data, self.batch))
        return Evaluation(row["loss"], row["accuracy"])

    def weights(self) -> dict[str, typing.Any]:
        """Parameters and running statistics as numpy arrays, by their names (network.weight_names); copies."""
        return self._session.weights()

    def set_weights(self, weights: typing.Mapping[str, typing.Any]) -> None:
        """Takes over all that are given, by name; the others stay."""
        self._session.set_weights(a_dict("the weights", weights))

    def moments(self) -> dict[str, dict[str, typing.Any]]:
        """The optimizer's state as numpy arrays: {array: {"first_moment": ..., "second_moment": ...}}."""
        return self._session.moments()

    def set_moments(self, moments: typing.Mapping[str, dict], steps_done: int) -> None:
        self._session.set_moments(a_dict("the moments", moments), whole("steps_done", steps_done))

    def save(self, path: str | os.PathLike[str]) -> None:
        """A checkpoint with all that training goes on from; `tide train --resume` reads it, too."""
        self._session.save(name_of(path))

    def load(self, path: str | os.PathLike[str], *, with_optimizer: bool = True) -> None:
        self._session.load(name_of(path), flag("with_optimizer", with_optimizer))

    def save_weights(self, path: str | os.PathLike[str]) -> None:
        """Parameters and statistics alone, as safetensors, by the names of network.weight_names."""
        self._session.save_weights(name_of(path))

    def plan(self, batch: int | None = None, *, training: bool = True) -> Plan:
        """How a step of this session runs."""
        return self._session.plan(self.batch_of(batch), flag("training", training))

    def batch_of(self, batch: typing.Any) -> int:
        return self.batch if batch is None else whole("batch", batch)

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


def given(what: str, array: typing.Any) -> typing.Any:
    if array is None:
        raise Error(f"{what} are None; give an array")
    return array


def name_of(file: typing.Any) -> str:
    return path("the file", file)


def known(reading: dict) -> dict:
    words = Session.data.__kwdefaults__
    for word in reading:
        if word not in words:
            raise Error(f"there is no option '{word}'; there are {', '.join(words)}, beside those of training itself")
    return reading


def reads(data: Data | None, work: typing.Callable[[], typing.Any]) -> typing.Any:
    """What works on data. Files that were left out meanwhile are warned of."""
    before = len(data.left_out) if data is not None else 0
    try:
        return work()
    finally:
        new = data.left_out[before:] if data is not None else []
        if new:
            count = "1 file was" if len(new) == 1 else f"{len(new)} files were"
            warnings.warn(f"{count} left out: {new[0]}{' ...' if len(new) > 1 else ''}", stacklevel=3)

"""Training a torch.nn.Module within a budget: `compile` and what it answers."""

import inspect
import types
import warnings

import torch

from .. import Error, Evaluation, Session
from ..checks import a, callback, short, whole
from .optimizers import Settings
from .imported import check_loss, checked_module, named_tensors, parts_of, tensor_of, trace, what
from .targets import HostTargets


def compile(module, example, loss=None, *, memory=None, optimizer=None, scheduler=None, precision=None, backend=None,
            clip=0.0, learning_rate=None, **options):
    """A module that trains within `memory` of the device. The module is not edited.

    module: each part in the mode that it is to train in; its weights move to host memory, since they lie in the
    session's memory from now on.
    example: a batch as the loader gives it, (samples, targets), or the loader itself; its batch is what is planned for.
    loss: called with the module's output and the targets; None: the module returns its loss.
    optimizer: of torch (SGD, Adam, AdamW, with groups), or a name with learning_rate=. scheduler: a torch one that
    `fit` steps after each epoch. precision: "fp32", "tf32" or "bf16" on GPUs. clip: the gradients' largest norm.
    Further options are those of tidepool.Session.
    """
    module = checked_module(module)
    example = parts_of(example)
    check_loss(loss)
    if optimizer is None:
        raise Error("give optimizer=: a torch optimizer of the module's parameters, or a name such as 'adamw'")
    settings = Settings.of(optimizer, learning_rate)
    check_scheduler(scheduler)
    if backend is None:
        backend = "cuda" if any(tensor.is_cuda for tensor in module.parameters()) else "cpu"
    module.to("cpu")
    traced = trace(module, example, loss)
    if traced.is_evaluated:
        warnings.warn(traced.notes[-1], stacklevel=2)
    return Compiled(traced, int(example[0].shape[0]), settings, scheduler, {
        **settings.options, "memory": memory, "precision": precision, "backend": backend, "clip": clip, **options})


def check_scheduler(scheduler):
    if scheduler is None:
        return
    step = getattr(scheduler, "step", None)
    if isinstance(scheduler, type) or not callable(step):
        raise Error(f"scheduler={short(scheduler)} is {a(scheduler)}; give one of torch.optim.lr_scheduler")
    if getattr(scheduler, "cycle_momentum", False):
        raise Error(f"the {type(scheduler).__name__} changes the momentum, of which a session has one; make it with "
                    f"cycle_momentum=False")
    if waits_for_loss(scheduler):
        if scheduler.mode != "min":
            raise Error(f"the {type(scheduler).__name__} is told the loss after each epoch; make it with mode='min'")
        return
    try:
        inspect.signature(step).bind()
    except TypeError:
        raise Error(f"the {type(scheduler).__name__} wants arguments for its step(); call it in a loop of your own, "
                    f"and leave scheduler= out") from None


def waits_for_loss(scheduler):
    return isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)


def batches_of(loader):
    """Samples and targets of each batch; a tuple of both is a single one."""
    if isinstance(loader, tuple):
        loader = [loader]
    if isinstance(loader, (str, bytes, dict, torch.Tensor)) or not hasattr(loader, "__iter__") and not hasattr(
            loader, "__getitem__"):
        raise Error(f"the loader is {a(loader)}; give a DataLoader, or a list of batches, (samples, targets)")
    for batch in loader:
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise Error(f"a batch of the loader is {what(batch)}; each must be (samples, targets)")
        yield batch


def as_array(tensor):
    tensor = tensor.detach()
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    return tensor.cpu().resolve_conj().resolve_neg().numpy()


class Compiled:
    """A module's training, in a session. `step` and `fit` train; `sync` writes what was learned into the module."""

    def __init__(self, traced, batch, settings, scheduler, options):
        self.traced, self.settings, self.scheduler = traced, settings, scheduler
        self.module = traced.module
        self.network = traced.network.with_parameters(settings.by_array(traced.trained))
        memory = options.pop("memory")
        options = {word: value for word, value in options.items() if value is not None}
        self.session = Session(self.network, batch, memory, **options)
        self.targets = HostTargets(traced.graph.program, traced.graph.targets, traced.graph.classes)
        self.is_trained = {name: tensor.requires_grad for name, tensor in self.module.named_parameters()}
        self.losses = {row["input"]: row["loss"] for row in self.network.targets}
        self.counted = 0  # steps that the module's counters know of
        moments, steps = settings.moments(traced.trained)
        if moments:
            self.session.set_moments(moments, steps)
            self.counted = self.session.steps_done

    @property
    def notes(self):
        """What is not as it was in the module, one line each."""
        return self.traced.notes

    def arrays_of(self, samples, targets):
        """A batch as the session takes it."""
        samples = tensor_of(samples, "the samples")
        if samples.dim() == 0:
            raise Error("the samples are a single number; give a batch of samples")
        given = targets if isinstance(targets, (tuple, list)) else [targets]
        made = self.targets(int(samples.shape[0]), [tensor_of(target).cpu() for target in given])
        return as_array(samples), {self.losses[name]: as_array(tensor) for name, tensor in made.items()}

    def check_unchanged(self):
        """What was read when it was compiled."""
        self.settings.check_unchanged()
        for name, parameter in self.module.named_parameters():
            before = self.is_trained.get(name)
            if before is not None and parameter.requires_grad != before:
                raise Error(f"requires_grad of '{name}' changed from {before} to {parameter.requires_grad} after the "
                            f"module was compiled; change it back, or sync() and compile again")

    def step(self, samples, targets):
        """One training step; the loss of the batch, before its update. Tensors, or numpy arrays."""
        self.check_unchanged()
        rate = self.settings.learning_rate()
        metric = self.session.step(*self.arrays_of(samples, targets), rate)
        self.settings.stepped()
        return metric.loss

    def fit(self, loader, epochs=1, *, validation=None, on_step=None, on_epoch=None):
        """Whole epochs of a loader; what happened in each, as a list of dicts. The module has the weights then, also
        where something ends it, such as Ctrl-C."""
        epochs = whole("epochs", epochs)
        callback("on_step", on_step)
        callback("on_epoch", on_epoch)
        for once in (loader, validation):
            if epochs > 1 and isinstance(once, types.GeneratorType):
                raise Error(f"a generator gives its batches once, which is one epoch and not {epochs}; give a list of "
                            f"batches or a DataLoader")
        report = []
        try:
            for epoch in range(epochs):
                report.append(self.fit_epoch(loader, epoch + 1, validation, on_step))
                if on_epoch is not None:
                    on_epoch(report[-1])
        finally:
            self.sync()
        return report

    def fit_epoch(self, loader, epoch, validation, on_step):
        losses, samples = 0.0, 0
        for number, (x, y) in enumerate(batches_of(loader)):
            loss = self.step(x, y)
            losses, samples = losses + loss * len(x), samples + len(x)
            if on_step is not None:
                on_step({"epoch": epoch, "step": number + 1, "loss": loss})
        if samples == 0:
            raise Error(f"the loader gave no batches in epoch {epoch}; " + (
                "is it used up? give a list of batches or a DataLoader" if epoch > 1 else
                "give one that has some, such as a DataLoader"))
        row = {"epoch": epoch, "loss": losses / samples}
        if validation is not None:
            row["validation"] = self.evaluate(validation)
        if self.scheduler is not None and waits_for_loss(self.scheduler):
            self.scheduler.step(row["loss"] if validation is None else row["validation"].loss)
        elif self.scheduler is not None:
            self.scheduler.step()
        return row

    def evaluate(self, loader):
        """Loss and accuracy over a loader, forward only, as in the module's evaluation mode."""
        loss, right, samples = 0.0, 0.0, 0
        for x, y in batches_of(loader):
            evaluation = self.session.evaluate(*self.arrays_of(x, y), batch=len(x))
            loss, samples = loss + evaluation.loss * len(x), samples + len(x)
            right = None if right is None or evaluation.accuracy is None else right + evaluation.accuracy * len(x)
        if samples == 0:
            raise Error("the loader gave no batches; give one that has some, such as a DataLoader")
        return Evaluation(loss / samples, None if right is None else right / samples)

    def sync(self):
        """Writes weights, running statistics and counters into the module, and moments into the torch optimizer."""
        weights = self.session.weights()
        tensors = named_tensors(self.module)
        steps = self.session.steps_done - self.counted
        with torch.no_grad():
            for name, value in weights.items():
                tensor = tensors.get(name)
                if tensor is not None and tensor.dtype.is_floating_point:
                    tensor.copy_(torch.from_numpy(value.reshape(tuple(tensor.shape))))
            for name, added in self.traced.graph.counters.items():
                tensors[name] += added.to(tensors[name]) * steps
        self.counted += steps
        if self.settings.optimizer is not None:
            self.settings.write_back(self.session.moments(), self.traced.trained, self.session.steps_done)
        return self.module

    def plan(self):
        """How a step runs."""
        return self.session.plan()

    @property
    def memory(self):
        """Bytes taken, by kind of memory."""
        return self.session.memory

    def __repr__(self):
        return f"<tidepool.torch.Compiled {self.network.name} at batch {self.session.batch}>"

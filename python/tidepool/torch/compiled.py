"""Training a torch.nn.Module within a budget: `compile` and what it answers."""

import torch

from .. import Error, Evaluation, Session
from .optimizers import Settings, named
from .imported import named_tensors, parts_of, trace
from .targets import HostTargets


def compile(module, example, loss=None, *, memory=None, optimizer=None, scheduler=None, precision=None, backend=None,
            clip=0.0, learning_rate=None, **options):
    """A module that trains within `memory` of the device. The module is not edited.

    module: in training mode; its weights move to host memory, since they lie in the session's memory from now on.
    example: a batch as the loader gives it, (samples, targets), or the loader itself; its batch is what is planned for.
    loss: called with the module's output and the targets; None: the module returns its loss.
    optimizer: of torch (SGD, Adam, AdamW, with groups), or a name with learning_rate=. scheduler: a torch one that
    `fit` steps after each epoch. precision: "fp32", "tf32" or "bf16" on GPUs. clip: the gradients' largest norm.
    Further options are those of tidepool.Session.
    """
    if optimizer is None:
        raise Error("give optimizer=: a torch optimizer of the module's parameters, or a name such as 'adamw'")
    settings = named(optimizer, {"learning_rate": learning_rate}) if isinstance(optimizer, str) else Settings.of(
        optimizer)
    if backend is None:
        backend = "cuda" if any(tensor.is_cuda for tensor in module.parameters()) else "cpu"
    module.to("cpu")
    traced = trace(module, example, loss)
    return Compiled(traced, int(parts_of(example)[0].shape[0]), settings, scheduler, {
        **settings.options, "memory": memory, "precision": precision, "backend": backend, "clip": clip, **options})


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
        self.targets = HostTargets(traced.graph.program, traced.graph.targets)
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
        given = list(targets) if isinstance(targets, (tuple, list)) else [targets]
        given = [target.detach().cpu() for target in given]
        made = self.targets(int(samples.shape[0]), given)
        return as_array(samples), {self.losses[name]: as_array(tensor) for name, tensor in made.items()}

    def step(self, samples, targets):
        """One training step; the loss of the batch, before its update."""
        rate = self.settings.learning_rate()
        metric = self.session.step(*self.arrays_of(samples, targets), rate)
        self.settings.stepped()
        return metric.loss

    def fit(self, loader, epochs=1, *, validation=None, on_step=None, on_epoch=None):
        """Whole epochs of a loader; what happened in each, as a list of dicts. The module has the weights then, also
        where something ends it, such as Ctrl-C."""
        report = []
        try:
            for epoch in range(epochs):
                losses, samples = 0.0, 0
                for number, (x, y) in enumerate(loader):
                    loss = self.step(x, y)
                    losses, samples = losses + loss * len(x), samples + len(x)
                    if on_step is not None:
                        on_step({"epoch": epoch + 1, "step": number + 1, "loss": loss})
                row = {"epoch": epoch + 1, "loss": losses / max(samples, 1)}
                if validation is not None:
                    row["validation"] = self.evaluate(validation)
                if self.scheduler is not None:
                    self.scheduler.step()
                report.append(row)
                if on_epoch is not None:
                    on_epoch(row)
        finally:
            self.sync()
        return report

    def evaluate(self, loader):
        """Loss and accuracy over a loader, forward only, as in the module's evaluation mode."""
        loss, right, samples = 0.0, 0.0, 0
        for x, y in [loader] if isinstance(loader, tuple) else loader:
            evaluation = self.session.evaluate(*self.arrays_of(x, y), batch=len(x))
            loss, right = loss + evaluation.loss * len(x), right + evaluation.accuracy * len(x)
            samples += len(x)
        if samples == 0:
            raise Error("the loader has no batches")
        return Evaluation(loss / samples, right / samples)

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

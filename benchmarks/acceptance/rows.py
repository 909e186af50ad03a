"""What gpu_acceptance runs: the rows of its figures, how long its tests take and which of them may skip themselves.

Later work adds its rows here (several devices, new models, transformers). A row is one line in `ROWS`:
who trains what, in which batch, precision and memory. Its place is its importance, because what does not
fit into the time is left out from the end; keep a row of Tidepool beside the PyTorch rows that it is
compared with, since they are compared by model, batch, precision and memory. `seconds` is a generous guess
of what the row takes in all: it starts only while so much time is left, and is stopped at three times that.
What the command line of `tide train` has and a row has not goes into `options`.
"""
import dataclasses
import fnmatch
import json

PERCENTS = ("66%", "53%", "40%", "33%", "25%")


@dataclasses.dataclass(frozen=True)
class Row:
    side: str  # "tide" or "torch"
    model: str
    batch: int
    precision: str  # "tf32" or "bf16"
    seconds: float
    memory: str = ""  # no limit; or "12GiB"; or "66%" of what the unlimited row has planned
    steps: int = 30  # of tide: as many as the unlimited row, or the weights cannot be compared
    options: tuple = ()  # more for the command line of `tide train`
    same_weights: bool = True  # after all steps, as the unlimited row's; not where sums have another order
    mode: str = ""  # of torch: a name of TORCH_MODES
    label: str = ""  # tells rows apart that are otherwise alike

    @property
    def name(self):
        parts = [self.model, str(self.batch), self.precision, self.memory, self.label]
        if self.side == "torch":
            parts.append(f"PyTorch {self.mode}")
        return " ".join(part for part in parts if part)

    @property
    def key(self):
        """Rows of both sides with the same key are compared."""
        return (self.model, self.batch, self.precision, self.memory)


# The name of a column, and the options of torch_side.py for it.
TORCH_MODES = {
    "eager": ("--search",),
    "compiled": ("--search", "--compiled"),
    "plain": (),
    "blocks": ("--checkpoints",),  # each residual block is run again in the backward pass
}


def tide(model, batch, precision, seconds, **more):
    return Row("tide", model, batch, precision, seconds, **more)


def torch(model, batch, precision, mode, seconds, **more):
    return Row("torch", model, batch, precision, seconds, mode=mode, **more)


CUT = {"memory": "25%", "same_weights": False}

ROWS = [
    tide("resnet50", 184, "tf32", 25),  # the first of a kind also measures its tasks, for the predictions
    torch("resnet50", 184, "tf32", "eager", 25),
    tide("resnet50", 184, "bf16", 25),
    torch("resnet50", 184, "bf16", "eager", 20),
    *[tide("resnet50", 184, "tf32", 12, memory=percent) for percent in PERCENTS],
    *[tide("resnet50", 184, "bf16", 12, memory=percent) for percent in PERCENTS],
    tide("resnet50", 320, "tf32", 25, memory="12GiB", steps=20),
    torch("resnet50", 320, "tf32", "blocks", 20, memory="12GiB"),
    tide("resnet50", 1000, "bf16", 40, memory="12GiB", steps=12),
    tide("resnet152", 184, "tf32", 35, memory="12GiB", steps=15),
    torch("resnet152", 184, "tf32", "blocks", 20, memory="12GiB"),
    tide("resnet50", 184, "tf32", 20, options=("--sub-batch", "92", "--allow", "changed"), label="in 2", **CUT),
    tide("resnet50", 184, "tf32", 20, label="in 2 exact",
         options=("--sub-batch", "92", "--allow", "reordered", "--batch-norm", "exact"), **CUT),
    torch("resnet50", 184, "bf16", "compiled", 70),
    tide("resnet50", 184, "bf16", 12, label="again"),  # how far two runs of the same are apart
    torch("resnet50", 184, "tf32", "compiled", 60),
    tide("resnet50", 184, "tf32", 12, label="again"),
    tide("resnet50", 320, "bf16", 25, memory="12GiB", steps=20),
    torch("resnet50", 320, "bf16", "blocks", 20, memory="12GiB"),
    tide("resnet152", 184, "bf16", 35, memory="12GiB", steps=15),
    torch("resnet152", 184, "bf16", "blocks", 20, memory="12GiB"),
    torch("resnet50", 320, "tf32", "plain", 15, memory="12GiB"),
    tide("resnet50", 320, "tf32", 15, steps=20),
    tide("resnet50", 1000, "tf32", 40, memory="12GiB", steps=12),
]

# Seconds of a test by the first pattern that its name matches, as seen on an H200 with four processes beside each
# other. Only the order of work and the patience depend on them: a test that no pattern knows is found all the same.
TEST_SECONDS = [
    ("Nets/CudaSession.*/lstm*", 2),
    ("Nets/CudaSession.*/inception*", 40),
    ("Nets/CudaSession.*", 28),
    ("FusedStepTest.UpdatesManyParametersAtOnce", 11),
    ("FusedStepTest.*", 8),
    ("Zoo/CudaRounds.*", 4.5),
    ("HugeOperatorTest.*", 4),
    ("LossTest.*", 3),
    ("Cases/Bf16Test.IsWithinItsTolerance/*", 1.5),
    ("Cases/OperatorTest.MatchesReferenceInSubBatches/*", 1),
    ("Cases/Bf16Test.IsWithinItsToleranceUnder*", 0.5),
    ("Cases/OperatorTest.MatchesReference*", 0.5),
    ("Cases/Bf16Test.ReplayGivesTheSameBits/*", 0.25),
    ("Cases/ReplayTest.OfTestedBackend*", 0.25),
    ("Torch/GpuGradients.*", 0.7),
    ("Cases/LargeOperatorTest.*", 0.8),
    ("*", 0.1),
]

# Tests that may skip themselves on a machine with one GPU. Any other that does has not shown what it is there for.
EXPECTED_SKIPS = [
    "All/BackendTest.RefusesTensorsOfTheWrongSize/null",  # that backend has nothing to refuse
]


def may_skip(name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in EXPECTED_SKIPS)


def test_seconds(name):
    return next(seconds for pattern, seconds in TEST_SECONDS if fnmatch.fnmatchcase(name, pattern))


def reference_of(row, rows):
    """The unlimited row that a row of Tidepool is to agree with; None where there is none, or it is the row itself."""
    if row.side != "tide":
        return None
    for other in rows:
        is_plain = other.side == "tide" and not other.memory and not other.options and not other.label
        if is_plain and other.key[:3] == row.key[:3]:
            return other if other != row else None
    return None


def problem_of(rows):
    """Why a table cannot be run, or nothing."""
    names = [row.name for row in rows]
    for row in rows:
        reference = reference_of(row, rows)
        if names.count(row.name) > 1:
            return f"two rows are called '{row.name}': give one of them a label"
        if row.side not in ("tide", "torch"):
            return f"{row.name}: a side is tide or torch, not '{row.side}'"
        if row.side == "torch" and row.mode not in TORCH_MODES:
            return f"{row.name}: a mode of PyTorch is one of {', '.join(TORCH_MODES)}, not '{row.mode}'"
        if row.memory.endswith("%") and (reference is None or rows.index(reference) > rows.index(row)):
            return f"{row.name}: there is no unlimited row before it of which to take {row.memory}"
        if reference is not None and row.same_weights and row.steps != reference.steps:
            return f"{row.name} has {row.steps} steps, {reference.name} {reference.steps}: weights cannot be compared"
    return None


def read_rows(path):
    """Another table, from a JSON file: a list of objects with the fields of Row."""
    with open(path) as file:
        return [Row(**{**entry, "options": tuple(entry.get("options", ()))}) for entry in json.load(file)]

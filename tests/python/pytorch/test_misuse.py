"""What a loop of one's own may do between steps, and what is easily given wrongly: followed, or refused in one line."""

import copy
import math
import warnings

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import tidepool
import tidepool.torch
from exact import check, classes
from test_training import OPTIMIZERS, assert_same_states, data, loader, small_net, torch_loop


def one_line(call):
    with pytest.raises(tidepool.Error) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def compiled(optimizer="momentum", example=None, loss=F.cross_entropy, **options):
    module = small_net()
    if isinstance(optimizer, str) and optimizer in OPTIMIZERS:
        optimizer = OPTIMIZERS[optimizer](module)
    example = next(iter(loader())) if example is None else example
    return tidepool.torch.compile(module, example, loss, optimizer=optimizer, **options)


# Between steps

CHANGES = [
    ("momentum", "momentum", 0.5, "param_groups[0]['momentum'] changed from 0.9 to 0.5"),
    ("momentum", "weight_decay", 0.1, "param_groups[0]['weight_decay'] changed from 0 to 0.1"),
    ("momentum", "nesterov", True, "param_groups[0]['nesterov'] changed from False to True"),
    ("momentum", "dampening", 0.5, "param_groups[0]['dampening'] changed from 0 to 0.5"),
    ("adam", "betas", (0.5, 0.99), "param_groups[0]['betas'] changed from (0.8, 0.99) to (0.5, 0.99)"),
    ("adam", "eps", 1e-3, "param_groups[0]['eps'] changed from 1e-06 to 0.001"),
]


@pytest.mark.parametrize("name, word, value, text", CHANGES)
def test_settings_that_are_read_once_may_not_change(name, word, value, text):
    trainer, (x, y) = compiled(name), next(iter(loader()))
    trainer.step(x, y)
    before, group = trainer.session.weights_hash, trainer.settings.optimizer.param_groups[0]
    kept, group[word] = group[word], value
    assert text in one_line(lambda: trainer.step(x, y))
    assert trainer.session.weights_hash == before
    group[word] = kept
    trainer.step(x, y)


def test_cycles_of_momentum_are_refused():
    trainer, (x, y) = compiled(), next(iter(loader()))
    scheduler = torch.optim.lr_scheduler.OneCycleLR(trainer.settings.optimizer, 0.1, total_steps=8)
    assert "make the scheduler with cycle_momentum=False" in one_line(lambda: trainer.step(x, y))
    module = small_net()
    optimizer = OPTIMIZERS["momentum"](module)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=8)
    assert "cycle_momentum=False" in one_line(lambda: tidepool.torch.compile(
        module, loader(), F.cross_entropy, optimizer=optimizer, scheduler=scheduler))


def test_groups_that_are_added_are_refused():
    trainer, (x, y) = compiled(), next(iter(loader()))
    trainer.settings.optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    assert "groups have other parameters" in one_line(lambda: trainer.step(x, y))


def test_gradients_may_not_be_switched_between_steps():
    trainer, (x, y) = compiled(), next(iter(loader()))
    trainer.module[0].weight.requires_grad_(False)
    assert "requires_grad of '0.weight' changed from True to False" in one_line(lambda: trainer.step(x, y))
    trainer.module[0].weight.requires_grad_(True)
    trainer.step(x, y)


def test_a_plateau_is_told_the_loss():
    module = small_net()
    optimizer = OPTIMIZERS["sgd"](module)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=1e9, factor=0.5)
    trainer = tidepool.torch.compile(module, loader(), F.cross_entropy, optimizer=optimizer, scheduler=plateau)
    trainer.fit(loader(), epochs=3)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1 / 8)  # each epoch is a bad one


# Modes

class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(4, 5)
        nn.init.normal_(self.body[1].running_mean)

    def forward(self, x):
        return F.dropout(self.head(self.body(x).mean((2, 3))), 0.5, self.training)


def test_a_module_in_evaluation_mode_is_trained_as_it_is():
    x, y = data().tensors[0][:4], classes(5, 4)
    traced = check(Dropping().eval(), x, y, F.cross_entropy)
    assert not traced.graph.counters and traced.module.training is False
    assert not {"dropout", "drop_path"} & {layer["kind"] for layer in traced.network.layers()}
    assert traced.notes[-1].startswith("the module is in evaluation mode")
    assert "dropout" in {layer["kind"] for layer in tidepool.torch.trace(Dropping(), (x, y), F.cross_entropy)
                         .network.layers()}


def test_evaluation_mode_does_as_pytorchs_loop_and_says_so():
    ours, theirs = small_net().eval(), small_net().eval()
    batches = list(loader())
    with pytest.warns(UserWarning, match="the module is in evaluation mode"):
        trainer = tidepool.torch.compile(ours, batches[0], F.cross_entropy, optimizer=OPTIMIZERS["sgd"](ours))
    losses = [trainer.step(x, y) for x, y in batches]
    assert numpy.allclose(losses, torch_loop(theirs, OPTIMIZERS["sgd"](theirs), batches), rtol=1e-4)
    trainer.sync()
    assert_same_states(ours, theirs, 1e-4)
    assert torch.equal(ours[1].running_mean, torch.zeros(8))


def test_frozen_layers_statistics_move_unless_they_are_evaluated():
    for mode in (True, False):
        ours, theirs = small_net(), small_net()
        for module in (ours, theirs):
            module[:2].requires_grad_(False)
            module[1].train(mode)
        batches = list(loader())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trainer = tidepool.torch.compile(ours, batches[0], F.cross_entropy, optimizer=OPTIMIZERS["sgd"](ours))
        for x, y in batches:
            trainer.step(x, y)
        torch_loop(theirs, OPTIMIZERS["sgd"](theirs), batches)
        trainer.sync()
        assert_same_states(ours, theirs, 1e-4)
        assert torch.equal(ours[1].running_mean, torch.zeros(8)) == (not mode)


# What is given

def test_numpys_arrays_are_taken():
    batches = [(x.numpy(), y.numpy()) for x, y in loader()]
    hashes = set()
    for example in (batches[0], (batches[0][0].astype(numpy.float64), batches[0][1])):
        trainer = compiled(example=example)
        trainer.fit(batches)
        hashes.add(trainer.session.weights_hash)
    trainer = compiled()
    trainer.fit(loader())
    assert hashes == {trainer.session.weights_hash}
    x, y = batches[0]
    assert trainer.evaluate((x[::-1], y[::-1])).loss == pytest.approx(trainer.evaluate((x, y)).loss, rel=1e-5)


@pytest.mark.parametrize("change, text", [
    (lambda x, y: ([x], y), "the samples: a list of 1 is no tensor"),
    (lambda x, y: (None, y), "the samples: None is no tensor"),
    (lambda x, y: (numpy.array(["a"]), y), "the samples: the array cannot be taken as a tensor"),
    (lambda x, y: (torch.tensor(1.0), y), "the samples are a single number"),
    (lambda x, y: (x, None), "the targets: None is no tensor"),
    (lambda x, y: (x, y.tolist()), "the targets: an int is no tensor"),
    (lambda x, y: (x, (y, y)), "the example had 1 targets, and this batch has 2"),
    (lambda x, y: (x, ()), "the example had 1 targets, and this batch has 0"),
    (lambda x, y: (x, y[:3]), "have extents 3; give 1 for each of 8 samples"),
    (lambda x, y: (x, y + 10), "and the module has 5 classes; targets are from 0 to 4, or -100, which is left out"),
    (lambda x, y: (x, torch.where(y == y[0], -1, y)), "a target is -1, and the module has 5 classes"),
])
def test_batches(change, text):
    trainer = compiled()
    before = trainer.session.weights_hash
    batch = change(*next(iter(loader())))
    assert text in one_line(lambda: trainer.step(*batch))
    assert trainer.session.weights_hash == before and trainer.session.steps_done == 0


@pytest.mark.parametrize("ignored", [-100, -1, 255, 21])
def test_what_a_loss_ignores_is_a_target(ignored):
    x, y = next(iter(loader()))
    y[2:5] = ignored
    criterion = nn.CrossEntropyLoss(ignore_index=ignored)
    trainer = compiled(example=(x, y), loss=criterion)
    assert trainer.step(x, y) == pytest.approx(criterion(small_net()(x), y).item(), rel=1e-4)
    y[0] = 7
    assert f"a target is 7, and the module has 5 classes; targets are from 0 to 4, or {ignored}" in one_line(
        lambda: trainer.step(x, y))


def test_what_the_loss_does_with_targets_is_said():
    def loss(out, y):
        return F.mse_loss(out, F.one_hot(y, 5).float())
    trainer, (x, y) = compiled(loss=loss), next(iter(loader()))
    assert "what the loss does with its targets cannot be done with these" in one_line(lambda: trainer.step(x, y + 7))


@pytest.mark.parametrize("call, text", [
    (lambda m, b: tidepool.torch.compile(5, b, F.cross_entropy), "an int is not a torch.nn.Module"),
    (lambda m, b: tidepool.torch.compile(Dropping, b, F.cross_entropy), "Dropping is a class of modules"),
    (lambda m, b: tidepool.torch.compile(m, [], F.cross_entropy), "the example is empty"),
    (lambda m, b: tidepool.torch.compile(m, DataLoader([]), F.cross_entropy), "has no batches"),
    (lambda m, b: tidepool.torch.compile(m, iter([b]), F.cross_entropy), "gives each batch once"),
    (lambda m, b: tidepool.torch.compile(m, [b, b, b], F.cross_entropy), "it is a list of 3"),
    (lambda m, b: tidepool.torch.compile(m, b, "ce"), "the loss is a str; give what is called"),
    (lambda m, b: tidepool.torch.compile(m, b, nn.CrossEntropyLoss), "the loss is the class CrossEntropyLoss"),
    (lambda m, b: tidepool.torch.compile(m, b, F.cross_entropy, optimizer=5), "optimizer=5 is an int"),
    (lambda m, b: tidepool.torch.compile(m, b[0], F.cross_entropy, optimizer="sgd", learning_rate=1),
     "the loss needs targets"),
    (lambda m, b: tidepool.torch.compile(m, b[0], optimizer="sgd", learning_rate=1), "there is no loss: give loss="),
    (lambda m, b: tidepool.torch.compile(m, b, F.cross_entropy, optimizer="sgd", learning_rate="a"),
     "learning_rate='a' is not a number from 0 on"),
    (lambda m, b: tidepool.torch.compile(m, b, F.cross_entropy, optimizer="sgd", learning_rate=1, scheduler=5),
     "scheduler=5 is an int"),
    (lambda m, b: tidepool.torch.explain(m, b, loss=F.cross_entropy, rows="a"), "rows='a' is not a whole number"),
    (lambda m, b: tidepool.torch.explain(m, b, loss=F.cross_entropy, memory=1.5), "memory=1.5 is not a whole number"),
])
def test_arguments(call, text):
    assert text in one_line(lambda: call(small_net(), next(iter(loader()))))


@pytest.mark.parametrize("rate", [math.nan, math.inf])
def test_rates_are_finite(rate):
    trainer, (x, y) = compiled(), next(iter(loader()))
    trainer.settings.optimizer.param_groups[0]["lr"] = rate
    assert "is not a number from 0 on" in one_line(lambda: trainer.step(x, y))


@pytest.mark.parametrize("given, text", [
    ("photos", "the loader is a str"),
    (5, "the loader is an int"),
    ([], "the loader gave no batches in epoch 1"),
    ([torch.zeros(8, 3, 12, 12)], "a batch of the loader is a Tensor; each must be (samples, targets)"),
    (DataLoader(TensorDataset(torch.zeros(8, 3, 12, 12))), "a batch of the loader is a list of 1"),
])
def test_loaders(given, text):
    trainer = compiled()
    assert text in one_line(lambda: trainer.fit(given))
    assert text.replace(" in epoch 1", "") in one_line(lambda: trainer.evaluate(given))


def test_what_is_used_up_is_no_epoch():
    trainer = compiled()
    assert "a generator gives its batches once" in one_line(lambda: trainer.fit((b for b in loader()), epochs=2))
    assert trainer.session.steps_done == 0
    assert "no batches in epoch 2; is it used up?" in one_line(lambda: trainer.fit(iter(list(loader())), epochs=2))
    assert trainer.session.steps_done == 5
    assert trainer.fit((b for b in loader()))[0]["loss"] > 0
    assert "epochs='a'" in one_line(lambda: trainer.fit(loader(), epochs="a"))


def test_explain_takes_an_optimizer_as_compile_does():
    module, options = small_net(), {"loss": F.cross_entropy, "device": "rtx3060"}
    peaks = [tidepool.torch.explain(module, loader(), optimizer=optimizer, **options).rows[1]["peak_bytes"]
             for optimizer in (OPTIMIZERS["sgd"](module), "sgd", OPTIMIZERS["adam"](module), "adam")]
    assert peaks[0] == peaks[1] < peaks[2] == peaks[3]


# Tracing

class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 5)

    def forward(self, x):
        x = x.mean((2, 3))
        return self.head(x if x.sum() > 0 else -x)


def test_what_cannot_be_traced_is_one_line_alone(capfd):
    batch = next(iter(loader()))
    assert "test_misuse.py" in one_line(lambda: tidepool.torch.trace(Branching(), batch, F.cross_entropy))
    module = copy.deepcopy(small_net())
    module[1].momentum = None
    assert "batch norm '1' has momentum=None" in one_line(
        lambda: tidepool.torch.trace(module, batch, F.cross_entropy))
    out, err = capfd.readouterr()
    assert out == err == ""
    tidepool.torch.trace(module.eval(), batch, F.cross_entropy)


@pytest.mark.parametrize("loss, text", [
    (lambda out, y: -F.cross_entropy(out, y), "a loss may only be added to others, and multiplied by positive numbers"),
    (lambda out, y: F.cross_entropy(out, y).sqrt(), "a loss may only be added to others"),
    (lambda out, y: F.cross_entropy(out, y)[None].expand(2).mean(), "a loss may only be added to others"),
    (lambda out, y: (out - F.one_hot(y, 5)).square().mean(), "the losses that do so are"),
])
def test_what_is_done_to_a_loss(loss, text):
    assert text in one_line(lambda: tidepool.torch.trace(small_net(), next(iter(loader())), loss))

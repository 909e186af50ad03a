"""Whole jobs: the same as PyTorch's own loop, within a budget, and what is left in the module and the optimizer."""

import copy
import itertools

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import tidepool
import tidepool.torch


def small_net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(2),
                         nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))


def data(samples=40):
    generator = torch.Generator().manual_seed(3)
    y = torch.randint(0, 5, (samples,), generator=generator)
    x = torch.randn(samples, 3, 12, 12, generator=generator) + y.view(-1, 1, 1, 1) * 0.3
    return TensorDataset(x, y)


def loader(batch=8, samples=40):
    return DataLoader(data(samples), batch_size=batch)


def groups(module):
    decayed = [p for p in module.parameters() if p.dim() > 1]
    rest = [p for p in module.parameters() if p.dim() == 1]
    return [{"params": decayed, "weight_decay": 1e-2}, {"params": rest, "weight_decay": 0.0, "lr": 0.02}]


OPTIMIZERS = {
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.1),
    "decay": lambda m: torch.optim.SGD(m.parameters(), lr=0.1, weight_decay=1e-2),
    "momentum": lambda m: torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9),
    "nesterov": lambda m: torch.optim.SGD(groups(m), lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda m: torch.optim.Adam(m.parameters(), lr=1e-3, betas=(0.8, 0.99), eps=1e-6, weight_decay=1e-2),
    "adamw": lambda m: torch.optim.AdamW(groups(m), lr=1e-3),
}


def torch_loop(module, optimizer, batches, scheduler=None):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if scheduler is not None:
            scheduler.step()
    return losses


def assert_same_states(ours, theirs, tolerance):
    for name, tensor in theirs.state_dict().items():
        other = ours.state_dict()[name]
        if not tensor.dtype.is_floating_point:
            assert torch.equal(other, tensor), name
        else:
            assert (other - tensor).norm() <= tolerance * tensor.norm() + tolerance, name


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_do_what_pytorchs_do(name):
    ours, theirs = small_net(), small_net()
    optimizer, other = OPTIMIZERS[name](ours), OPTIMIZERS[name](theirs)
    batches = list(loader())
    trainer = tidepool.torch.compile(ours, batches[0], F.cross_entropy, memory="4MiB", optimizer=optimizer)
    losses = [trainer.step(x, y) for x, y in batches]
    assert numpy.allclose(losses, torch_loop(theirs, other, batches), rtol=1e-4)
    trainer.sync()
    assert_same_states(ours, theirs, 2e-3 if "adam" in name else 1e-4)
    # The optimizer goes on in PyTorch as if it had been there.
    for mine, his in zip(ours.parameters(), theirs.parameters()):
        state = optimizer.state.get(mine, {})
        for word, moment in other.state.get(his, {}).items():
            if isinstance(moment, torch.Tensor):
                assert (state[word] - moment).norm() <= 1e-2 * moment.norm() + 1e-6, word
    torch_loop(ours, optimizer, batches[:1])


@pytest.mark.parametrize("name", ["momentum", "adamw"])
def test_an_optimizer_that_has_a_state_goes_on(name):
    ours, theirs = small_net(), small_net()
    optimizer, other = OPTIMIZERS[name](ours), OPTIMIZERS[name](theirs)
    batches = list(loader())
    for module, one in ((ours, optimizer), (theirs, other)):
        torch_loop(module, one, batches[:2])
    trainer = tidepool.torch.compile(ours, batches[0], F.cross_entropy, optimizer=optimizer)
    losses = [trainer.step(x, y) for x, y in batches[2:]]
    assert numpy.allclose(losses, torch_loop(theirs, other, batches[2:]), rtol=1e-4)
    trainer.sync()
    assert_same_states(ours, theirs, 2e-3)


def test_schedulers_work_as_they_do():
    ours, theirs = small_net(), small_net()
    batches = list(loader())
    found = []
    for module, tide in ((ours, True), (theirs, False)):
        optimizer = OPTIMIZERS["nesterov"](module)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, [0.1, 0.04], total_steps=8, cycle_momentum=False)
        if not tide:
            found.append(torch_loop(module, optimizer, batches, scheduler))
            continue
        trainer = tidepool.torch.compile(module, batches[0], F.cross_entropy, optimizer=optimizer)
        losses = []
        for x, y in batches:
            losses.append(trainer.step(x, y))
            scheduler.step()
        found.append(losses)
    assert numpy.allclose(*found, rtol=1e-4)


def test_groups_that_go_apart_are_refused():
    module = small_net()
    optimizer = OPTIMIZERS["nesterov"](module)
    x, y = next(iter(loader()))
    trainer = tidepool.torch.compile(module, (x, y), F.cross_entropy, optimizer=optimizer)
    trainer.step(x, y)
    optimizer.param_groups[1]["lr"] *= 2
    with pytest.raises(tidepool.Error, match="must keep the groups' proportions"):
        trainer.step(x, y)


def test_fit_runs_a_loader_whose_last_batch_is_smaller():
    ours, theirs = small_net(), small_net()
    optimizer, other = OPTIMIZERS["momentum"](ours), OPTIMIZERS["momentum"](theirs)
    batches = loader(batch=16)
    scheduler, his = (torch.optim.lr_scheduler.StepLR(one, 1, 0.5) for one in (optimizer, other))
    trainer = tidepool.torch.compile(ours, batches, F.cross_entropy, optimizer=optimizer, scheduler=scheduler)
    report = trainer.fit(batches, epochs=2, validation=batches)
    for _ in range(2):
        torch_loop(theirs, other, batches)
        his.step()
    assert_same_states(ours, theirs, 1e-3)
    theirs.eval()
    x, y = data().tensors
    assert report[-1]["validation"].loss == pytest.approx(F.cross_entropy(theirs(x), y).item(), rel=1e-3)
    assert report[-1]["validation"].accuracy == pytest.approx((theirs(x).argmax(1) == y).float().mean().item(), abs=0.03)


def test_a_budget_changes_no_bit():
    hashes = set()
    for memory in (None, "100KiB"):
        module = small_net()
        trainer = tidepool.torch.compile(module, loader(), F.cross_entropy, memory=memory,
                                         optimizer=OPTIMIZERS["momentum"](module))
        if memory:
            assert trainer.memory["device_bytes"] <= 100 * 1024 < free
        else:
            free = trainer.memory["device_bytes"]
        trainer.fit(loader())
        hashes.add(trainer.session.weights_hash)
    assert len(hashes) == 1


def test_what_is_written_back_gives_the_same_outputs():
    module = small_net()
    trainer = tidepool.torch.compile(module, loader(), F.cross_entropy, optimizer="adamw", learning_rate=1e-3)
    trainer.fit(loader(), epochs=2)
    x, y = data().tensors
    module.eval()
    again = tidepool.torch.trace(copy.deepcopy(module), x, None, forward=True)
    session = tidepool.Session(again.network, len(x), answers=True)
    with torch.no_grad():
        assert numpy.allclose(session.predict(x.numpy()), module(x).numpy(), rtol=1e-3, atol=1e-4)
    assert trainer.evaluate((x, y)).loss == pytest.approx(F.cross_entropy(module(x), y).item(), rel=1e-4)


def test_parameters_outside_of_the_optimizer_stay():
    module = small_net()
    before = copy.deepcopy(module.state_dict())
    optimizer = torch.optim.SGD([module[9].weight], lr=0.1, momentum=0.9, weight_decay=0.1)
    trainer = tidepool.torch.compile(module, loader(), F.cross_entropy, optimizer=optimizer)
    trainer.fit(loader())
    for name, parameter in module.named_parameters():
        assert torch.equal(parameter, before[name]) == (name != "9.weight"), name


def test_ctrl_c_leaves_what_was_learned_in_the_module():
    module = small_net()
    before = copy.deepcopy(module)
    trainer = tidepool.torch.compile(module, loader(), F.cross_entropy, optimizer=OPTIMIZERS["sgd"](module))

    def stop(step):
        if step["step"] == 3:
            raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(loader(), on_step=stop)
    torch_loop(before, OPTIMIZERS["sgd"](before), itertools.islice(loader(), 3))
    assert_same_states(module, before, 1e-4)


@pytest.mark.parametrize("make, text", [
    (lambda m: torch.optim.RMSprop(m.parameters()), "the optimizer is a RMSprop; there are SGD, Adam and AdamW"),
    (lambda m: torch.optim.Adam(m.parameters(), amsgrad=True), "amsgrad=True"),
    (lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, dampening=0.1), "dampening=0.1"),
    (lambda m: torch.optim.SGD([{"params": [p], "momentum": 0.1 * i} for i, p in enumerate(m.parameters())], lr=0.1),
     "several momentum"),
    (lambda m: torch.optim.SGD(small_net().parameters(), lr=0.1), "has none of the module's parameters"),
    (lambda m: None, "give optimizer="),
    (lambda m: "adam", "needs learning_rate="),
    (lambda m: "best", "needs learning_rate="),
])
def test_optimizers_that_there_are_not(make, text):
    module = small_net()
    with pytest.raises(tidepool.Error) as caught:
        tidepool.torch.compile(module, loader(), F.cross_entropy, optimizer=make(module))
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_explain_says_what_would_fit_before_anything_runs():
    module = small_net()
    before = copy.deepcopy(module.state_dict())
    told = tidepool.torch.explain(module, loader(), memory="256KiB", loss=F.cross_entropy, device="rtx3060")
    kept, free = told.rows[:2]
    assert kept["peak_bytes"] > free["peak_bytes"] and free["slower"] == 1.0
    limited = [row for row in told.rows[2:] if row["fits"]]
    assert limited and all(row["peak_bytes"] <= row["memory_bytes"] for row in limited)
    assert told.rows[-1]["fits"] or told.rows[-1]["needed_bytes"] > told.rows[-1]["memory_bytes"]
    assert tidepool.plan(tidepool.torch.trace(module, loader(), F.cross_entropy).network, told.largest, "256KiB",
                         device="rtx3060")
    text = str(told)
    assert "every tensor kept" in text and f"largest batch in 256 KiB: {told.largest}" in text
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert tidepool.torch.explain(module, data().tensors[0][:4], largest_batch=False).rows[0]["fits"]

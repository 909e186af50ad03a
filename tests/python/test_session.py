import os
import signal
import threading
import time

import numpy
import pytest

import tidepool
from tidepool import _tidepool


def test_a_step_is_that_of_doubles(digits, digits_batch):
    x, y = digits_batch
    session = tidepool.Session(digits, 16, optimizer="sgd", seed=3)
    before = session.weights()
    exact = _tidepool.exact_step(digits, x, y, seed=3, random=True)
    metric = session.step(x, y, learning_rate=0.1)
    after = session.weights()
    assert metric.loss == pytest.approx(exact["loss"], rel=1e-5)
    for name, gradient in exact["gradients"].items():
        moved = (before[name].astype(float) - after[name]) / 0.1
        assert numpy.linalg.norm(moved - gradient) <= 1e-4 * numpy.linalg.norm(gradient) + 1e-5, name
    for name, statistic in exact["statistics"].items():
        assert numpy.allclose(after[name], statistic, rtol=1e-4, atol=1e-6), name


@pytest.mark.parametrize("memory", ["2MiB", "1500KiB"])
def test_a_budget_changes_no_bit(digits, memory):
    random = numpy.random.default_rng(2)
    batches = [(random.random((64, 1, 8, 8), dtype=numpy.float32), random.integers(0, 10, 64)) for _ in range(3)]
    hashes = []
    for budget in (None, memory):
        session = tidepool.Session(digits, 64, budget)
        for x, y in batches:
            session.step(x, y, 0.05)
        hashes.append(session.weights_hash)
        if budget:
            assert session.memory["device_bytes"] <= int(tidepool._tidepool.parse_size(budget))
    assert hashes[0] == hashes[1]


def test_arrays_are_read_as_they_lie():
    net = tidepool.network("lenet", input=(3, 28, 28))
    random = numpy.random.default_rng(1)
    x = random.integers(0, 256, (4, 3, 28, 28)).astype(numpy.uint8)
    y = numpy.array([1, 2, 3, 4])
    wide = numpy.zeros((4, 3, 28, 56), numpy.float32)
    wide[..., ::2] = x
    forms = [x, x.astype(numpy.float32), x.astype(numpy.float64),
             numpy.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2),
             numpy.ascontiguousarray(x.astype(numpy.float32).transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2),
             wide[..., ::2], x.astype(numpy.float32)[:, :, ::-1].copy()[:, :, ::-1]]
    hashes = set()
    for form in forms:
        session = tidepool.Session(net, 4, optimizer="sgd")
        session.step(form / 255 if form.dtype != numpy.uint8 else form, y, 0)
        hashes.add(session.step(form, y, 1e-4).loss)
    assert len(hashes) == 1


def test_targets_may_be_of_any_whole_type(digits, digits_batch):
    x, y = digits_batch
    losses = {tidepool.Session(digits, 16).step(x, y.astype(kind), 0).loss
              for kind in ("int64", "int32", "uint8", "int16")}
    assert len(losses) == 1


@pytest.mark.parametrize("change, text", [
    (lambda x, y: (x[:, :, :7], y), "the samples have extents 16x1x7x8; digits takes a batch of 1x8x8"),
    (lambda x, y: (x, y[:5]), "the targets of loss 'softmax': have extents 5; give 1 for each of 16 samples"),
    (lambda x, y: (x, y + 0.5), "this loss compares with classes"),
    (lambda x, y: (x.astype(numpy.int64), y), "convert them to float32"),
    (lambda x, y: ("samples", y), "is no array"),
    (lambda x, y: (x, [y, y]), "has 1 losses and was given 2 arrays"),
    (lambda x, y: (x, {"other": y}), "there are no targets for loss 'softmax'"),
    (lambda x, y: (x, None), "was given 0 arrays of targets"),
    (lambda x, y: (x[:0], y[:0]), "give a batch of"),
])
def test_what_does_not_fit_gets_one_line(digits, digits_batch, change, text):
    session = tidepool.Session(digits, 16)
    before = session.weights_hash
    with pytest.raises(tidepool.Error) as caught:
        session.step(*change(*digits_batch), 0.1)
    assert text in str(caught.value) and "\n" not in str(caught.value)
    assert session.weights_hash == before


def test_other_batches_are_planned_when_they_come(digits, digits_batch):
    x, y = digits_batch
    grown, known = tidepool.Session(digits, 16), tidepool.Session(digits, 16, batches=[5])
    for session in (grown, known):
        session.step(x, y, 0.1)
        session.step(x[:5], y[:5], 0.1)
        session.step(x, y, 0.1)
    assert grown.weights_hash == known.weights_hash and grown.steps_done == 3


def test_a_batch_that_does_not_fit_leaves_the_session_as_it_was(digits, digits_batch):
    x, y = digits_batch
    session = tidepool.Session(digits, 16, "600KiB")
    session.step(x, y, 0.1)
    before = session.weights_hash
    with pytest.raises(tidepool.Infeasible):
        session.step(numpy.repeat(x, 64, 0), numpy.repeat(y, 64), 0.1)
    assert session.weights_hash == before and session.steps_done == 1
    session.step(x, y, 0.1)


def test_checkpoints_go_on_with_the_same_bits(digits, digits_batch, tmp_path):
    x, y = digits_batch
    whole, first, second = (tidepool.Session(digits, 16, optimizer="adam") for _ in range(3))
    for _ in range(4):
        whole.step(x, y, 0.01)
    for _ in range(2):
        first.step(x, y, 0.01)
    first.save(tmp_path / "job.safetensors")
    second.load(tmp_path / "job.safetensors")
    for _ in range(2):
        second.step(x, y, 0.01)
    assert second.weights_hash == whole.weights_hash and second.steps_done == 4


def test_weights_and_moments_go_out_and_in(digits, digits_batch, tmp_path):
    x, y = digits_batch
    one, other = tidepool.Session(digits, 16), tidepool.Session(digits, 16)
    one.step(x, y, 0.1)
    weights, moments = one.weights(), one.moments()
    assert weights["fc.weight"].shape == (10, 256)
    assert set(moments["fc.weight"]) == {"first_moment"}
    other.set_weights(weights)
    other.set_moments(moments, one.steps_done)
    assert other.weights_hash == one.weights_hash and other.steps_done == 1
    assert one.step(x, y, 0.1) == other.step(x, y, 0.1)
    assert other.weights_hash == one.weights_hash
    one.save_weights(tmp_path / "weights.safetensors")
    third = tidepool.Session(digits.with_weights(str(tmp_path / "weights.safetensors")), 16)
    assert third.weights_hash == one.weights_hash
    with pytest.raises(tidepool.Error, match="has no array 'fc.wight'"):
        one.set_weights({"fc.wight": weights["fc.weight"]})
    with pytest.raises(tidepool.Error, match="array 'fc.weight' has extents 10x256, not 10"):
        one.set_weights({"fc.weight": weights["fc.bias"]})


def test_predictions_are_those_of_doubles(digits, digits_batch):
    x, _ = digits_batch
    session = tidepool.Session(digits, 16, answers=True)
    answers = session.predict(x)
    assert answers.shape == (16, 10) and numpy.allclose(answers.sum(1), 1, atol=1e-5)
    assert numpy.array_equal(session.predict(x, batch=5), answers)
    with pytest.raises(tidepool.Error, match="answers=True"):
        tidepool.Session(digits, 16).predict(x)


def test_training_reads_data_and_tells_of_it(digits):
    steps, epochs = [], []
    session = tidepool.Session(digits, 64, "2MiB")
    report = session.train("digits", epochs=2, on_step=steps.append, on_epoch=epochs.append)
    assert report["steps"] == len(steps) == steps[-1]["total_steps"] == session.steps_done
    assert [epoch["epoch"] for epoch in epochs] == [1, 2]
    assert epochs[1]["validation"]["accuracy"] > 0.9
    assert session.evaluate_data(session.data("digits")).accuracy == epochs[1]["validation"]["accuracy"]


def test_what_a_callback_throws_ends_training_between_steps(digits):
    session = tidepool.Session(digits, 64)

    def stop(step):
        if step["step"] == 3:
            raise ValueError("enough")
    with pytest.raises(ValueError, match="enough"):
        session.train("digits", on_step=stop)
    assert session.steps_done == 3
    session.train("digits")
    whole = tidepool.Session(digits, 64)
    whole.train("digits")
    assert session.weights_hash == whole.weights_hash


def test_ctrl_c_ends_training(digits):
    session = tidepool.Session(digits, 64)
    data = session.data("synthetic", synthetic_size=6400)

    def interrupt():
        while session_steps[0] < 3:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
    session_steps = [0]

    def count(step):
        session_steps[0] = step["step"]
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        session.train(data, epochs=100000, on_step=count)
    thread.join()
    assert 3 <= session.steps_done < 10_000_000


def test_others_run_while_it_computes():
    # The loop below is all in the library; a thread counts only if it is let in.
    net = tidepool.network("digits")
    session = tidepool.Session(net, 256)
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.0001)
    thread = threading.Thread(target=count)
    thread.start()
    x, y = numpy.zeros((256, 1, 8, 8), numpy.float32), numpy.zeros(256, int)
    while counted[0] == 0:
        time.sleep(0.001)
    inside = 0
    for _ in range(200):
        before = counted[0]
        session._session.step(x, y, 0.0)
        inside += counted[0] - before
        if inside > 3:
            break
    done.set()
    thread.join()
    assert inside > 3


def test_sessions_without_a_device_sheet(digits):
    with pytest.raises(tidepool.Error, match="runs on a backend"):
        tidepool.Session(digits, 16, device="rtx3060")


def test_layers_can_be_frozen_and_have_rates(digits, digits_batch):
    x, y = digits_batch
    net = digits.adapt(freeze=["conv1"], rates={"fc": 0.5})
    session = tidepool.Session(net, 16, optimizer="sgd")
    plain = tidepool.Session(digits, 16, optimizer="sgd")
    before = session.weights()
    session.step(x, y, 0.1)
    plain.step(x, y, 0.1)
    after, reference = session.weights(), plain.weights()
    assert numpy.array_equal(before["conv1.weight"], after["conv1.weight"])
    assert numpy.allclose(2 * (after["fc.weight"] - before["fc.weight"]), reference["fc.weight"] - before["fc.weight"],
                          atol=1e-6)

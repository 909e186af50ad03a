"""What is not as it should be is one line of tidepool.Error, before anything runs."""

import json
import math
import pathlib
import struct
import zlib

import numpy
import pytest

import tidepool


def one_line(call):
    with pytest.raises(tidepool.Error) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("call, text", [
    (lambda: tidepool.network(5), "the network 5 is an int"),
    (lambda: tidepool.network("lenet", input=5), "input=5 is not a shape"),
    (lambda: tidepool.network("lenet", input="3 by 32"), "input='3 by 32' is not a shape"),
    (lambda: tidepool.network("lenet", input=(1, 28.5, 28)), "28.5 is not a whole number"),
    (lambda: tidepool.network("lenet", loss=5), "loss=5 is an int"),
    (lambda: tidepool.network("lenet", weights=5), "the file of weights 5 is an int"),
    (lambda: tidepool.from_graph(5), "the graph is an int, not a dict"),
    (lambda: tidepool.from_graph({}, loss=5), "loss=5 is an int"),
])
def test_networks(call, text):
    assert text in one_line(call)


def test_an_input_may_be_text():
    assert tidepool.network("lenet", input="3x32x32").input == (3, 32, 32)
    assert tidepool.network("lenet", input=[3, 32, 32]).input == (3, 32, 32)


@pytest.mark.parametrize("call, text", [
    (lambda s, x, y: s.step(None, y, 0.1), "the samples are None"),
    (lambda s, x, y: s.step(x, y, "a"), "learning_rate='a' is not a number from 0 on"),
    (lambda s, x, y: s.step(x, y, None), "learning_rate=None is not a number from 0 on"),
    (lambda s, x, y: s.step(x, y, math.nan), "learning_rate=nan is not a number from 0 on"),
    (lambda s, x, y: s.step(x, y, math.inf), "learning_rate=inf is not a number from 0 on"),
    (lambda s, x, y: s.step(x, y, -0.1), "learning_rate=-0.1 is not a number from 0 on"),
    (lambda s, x, y: s.evaluate(x, y, batch="a"), "batch='a' is not a whole number"),
    (lambda s, x, y: s.train(5), "the data 5 is an int"),
    (lambda s, x, y: s.train("digits", epochs="a"), "epochs='a' is not a whole number"),
    (lambda s, x, y: s.train("digits", epochs=0), "epochs=0 is not possible"),
    (lambda s, x, y: s.train("digits", learning_rate=math.nan), "learning_rate=nan"),
    (lambda s, x, y: s.train("digits", schedule=5), "schedule=5 is an int"),
    (lambda s, x, y: s.train("digits", on_step=5), "on_step=5 is an int, not a function"),
    (lambda s, x, y: s.train("digits", cropp="none"), "there is no option 'cropp'; there are validation"),
    (lambda s, x, y: s.train(s.data("digits"), crop="none"), "give it to data() instead"),
    (lambda s, x, y: s.evaluate_data("digits"), "give what session.data() opens"),
    (lambda s, x, y: s.load(5), "the file 5 is an int"),
    (lambda s, x, y: s.set_weights(5), "the weights 5 is an int, not a dict"),
    (lambda s, x, y: s.plan("a"), "batch='a' is not a whole number"),
    (lambda s, x, y: tidepool.Session(s.network, 16, batches=5), "batches=5 is an int"),
])
def test_sessions(digits, digits_batch, call, text):
    session = tidepool.Session(digits, 16)
    before = session.weights_hash
    assert text in one_line(lambda: call(session, *digits_batch))
    assert session.weights_hash == before


def test_a_rate_of_zero_is_one(digits, digits_batch):
    session = tidepool.Session(digits, 16)
    before = session.weights()
    session.step(*digits_batch, 0)
    session.step(*digits_batch, numpy.float32(0))
    assert numpy.array_equal(session.weights()["fc.weight"], before["fc.weight"])


@pytest.fixture
def photos(tmp_path):
    """Bytes as grey pixels of 9x9: those of class 1 are white on their right."""
    random = numpy.random.default_rng(1)
    labels = random.integers(0, 2, 60)
    pixels = random.integers(0, 100, (60, 1, 9, 9)).astype(numpy.uint8)
    pixels[labels == 1, :, :, 5:] += 150
    numpy.save(tmp_path / "x.npy", pixels)
    numpy.save(tmp_path / "y.npy", labels)
    return tmp_path


def weights_after(digits, data, **reading):
    session = tidepool.Session(digits, 16)
    session.train(data, learning_rate=0.01, **reading)
    return session.weights_hash


@pytest.mark.parametrize("words", [
    {"crop": "padded"}, {"flip": True}, {"jitter": 0.5}, {"mean": 0.2, "deviation": 0.3},
    {"mean": [0.1, 0.2, 0.3], "deviation": (0.3, 0.3, 0.3)}, {"validation": 0.5}])
def test_data_has_the_programs_options(digits, photos, words):
    plain = weights_after(digits, photos)
    assert weights_after(digits, photos, **words) != plain
    assert weights_after(digits, tidepool.Session(digits, 16).data(photos, **words)) == weights_after(
        digits, photos, **words)
    if not {"mean", "validation"} & set(words):
        assert weights_after(digits, photos, **words, plain=True) == plain


def test_readers_change_no_bit(digits, photos):
    assert len({weights_after(digits, photos, workers=workers, flip=True) for workers in (-1, 0, 2)}) == 1


def test_mixed_samples_have_probabilities(digits, photos):
    soft = digits.adapt(soft_labels=True)
    assert weights_after(soft, photos, mixup=0.4) != weights_after(soft, photos, mixup=0.1)
    assert "adapt(soft_labels=True)" in one_line(lambda: weights_after(digits, photos, mixup=0.4))


@pytest.mark.parametrize("words, text", [
    ({"crop": "middle"}, "middle"), ({"crop": 5}, "crop=5 is an int"), ({"flip": 1}, "flip=1 is an int"),
    ({"jitter": 2}, "jitter=2 is not between 0 and 1"), ({"mixup": -1}, "mixup=-1 is not a number from 0 on"),
    ({"mean": 0.5}, "mean and deviation belong together"),
    ({"mean": "a", "deviation": 1}, "mean='a' is not a number"),
    ({"mean": [0.1, 0.2], "deviation": 1}, "mean takes 1 or 3 numbers"),
    ({"mean": 0, "deviation": 0}, "deviation=0 is not a number above 0"),
    ({"resize": 4}, "resize=4 is smaller than the network's input of 1x8x8"),
    ({"workers": -2}, "workers=-2 is not possible"), ({"workers": 0.5}, "workers=0.5 is not a whole number"),
    ({"on_bad_file": "mend"}, "on_bad_file='mend' is unknown; there is refuse and skip"),
    ({"validation": "a"}, "validation='a' is not a number"), ({"plain": 1}, "plain=1 is an int"),
])
def test_options_of_data(digits, photos, words, text):
    assert text in one_line(lambda: tidepool.Session(digits, 16).data(photos, **words))


def test_files_that_cannot_be_read_are_left_out(digits, tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for number in range(20):
            (tmp_path / name / f"{number}.png").write_bytes(grey_png([number * 10 + (name == "dog")]))
    session = tidepool.Session(digits, 8)
    try:
        session.train(tmp_path, learning_rate=0.01)
    except tidepool.Error as error:
        if "this build reads no images" not in str(error):
            raise
        pytest.skip(str(error))
    damaged = tmp_path / "dog" / "3.png"
    damaged.write_bytes(damaged.read_bytes()[:40])
    text = one_line(lambda: session.train(tmp_path, epochs=9, learning_rate=0.01, validation=0))
    assert "3.png" in text and text.endswith("leave such files out with on_bad_file='skip'")
    session = tidepool.Session(digits, 8)
    data = session.data(tmp_path, on_bad_file="skip", validation=0)
    with pytest.warns(UserWarning, match="1 file was left out: .*3.png"):
        session.train(data, epochs=2, learning_rate=0.01)
    assert len(data.left_out) == 1 and session.steps_done == 10


def grey_png(levels):
    """Of 12x12, whose columns have these levels by turns."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", 12, 12, 8, 0, 0, 0, 0)
    row = b"\0" + bytes(levels[column % len(levels)] for column in range(12))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row * 12)) + chunk(b"IEND", b"")


def test_masks_with_gaps_need_a_network_that_leaves_them_out(tmp_path):
    for folder, levels in (("images", [10, 200, 90]), ("masks", [0, 1, 255])):
        (tmp_path / folder).mkdir()
        for number in range(4):
            (tmp_path / folder / f"{number}.png").write_bytes(grey_png(levels))
    net = tidepool._tidepool.parse_network(json.dumps({"name": "small", "layers": [
        {"kind": "input", "name": "data", "channels": 1, "height": 12, "width": 12},
        {"kind": "convolution", "name": "conv", "inputs": ["data"], "channels": 2, "kernel": [1, 1]},
        {"kind": "softmax_cross_entropy", "name": "softmax", "inputs": ["conv"]}]}))
    assert "adapt(gaps_in_labels=True)" in one_line(lambda: tidepool.Session(net, 2).data(tmp_path))
    assert tidepool.Session(net.adapt(gaps_in_labels=True), 2).data(tmp_path, validation=0).size == 4


def test_paths_may_be_paths(digits, photos):
    session = tidepool.Session(digits, 16)
    assert session.data(pathlib.Path(photos)).size == session.data(str(photos)).size == 48

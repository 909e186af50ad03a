import numpy
import pytest

import tidepool
from tidepool import _tidepool


def linear_graph(weight, bias):
    return {
        "name": "line", "opset": 21,
        "inputs": [{"name": "x", "type": "float32", "shape": [-1, 3]},
                   {"name": "target", "type": "float32", "shape": [-1, 2]}],
        "outputs": ["y"],
        "nodes": [{"op": "Gemm", "name": "fc", "inputs": ["x", "w", "b"], "outputs": ["y"], "attributes": {"transB": 1},
                   "place": "model.py:3, in forward: self.fc(x)"},
                  {"op": "MeanSquaredError", "domain": "tidepool", "name": "loss", "inputs": ["y", "target"],
                   "outputs": ["l"]}],
        "constants": {"w": weight, "b": bias}, "frozen": ["b"]}


def test_a_graph_of_words_trains():
    random = numpy.random.default_rng(1)
    weight, bias = random.normal(size=(2, 3)).astype(numpy.float32), random.normal(size=2).astype(numpy.float32)
    net = tidepool.from_graph(linear_graph(weight, bias))
    x, target = random.normal(size=(5, 3)), random.normal(size=(5, 2)).astype(numpy.float32)
    exact = _tidepool.exact_step(net, x, target)
    error = x @ weight.T.astype(float) + bias - target
    assert exact["loss"] == pytest.approx((error ** 2).mean(), rel=1e-12)
    assert numpy.allclose(exact["gradients"]["w"], 2 * error.T @ x / error.size, rtol=1e-12, atol=0)
    assert "b" not in exact["gradients"]
    session = tidepool.Session(net, 5, optimizer="sgd")
    assert numpy.array_equal(session.weights()["w"], weight)
    session.step(x, target, 0.5)
    assert numpy.allclose(session.weights()["w"], weight - 0.5 * exact["gradients"]["w"], atol=1e-6)


@pytest.mark.parametrize("change, text", [
    (lambda g: g["nodes"][0].update(op="Gem"), "Gem"),
    (lambda g: g["nodes"][0].update(op=3), "node 1, 'op': is a int, not a text"),
    (lambda g: g["nodes"][0].pop("op"), "node 1: has no 'op'"),
    (lambda g: g["nodes"][0].update(inputs="x"), "is a str, not a list"),
    (lambda g: g["nodes"][0].update(inputs=["x", "v", "b"]), "'v' is made by no node"),
    (lambda g: g["constants"].update(w=numpy.zeros((2, 4), numpy.float32)), "fc"),
    (lambda g: g["constants"].update(w="text"), "constant 'w': is no array"),
    (lambda g: g["constants"].update(w=numpy.zeros((2, 3), complex)), "constant 'w': its type"),
    (lambda g: g["inputs"][0].update(type="float3"), "there is no type 'float3'"),
    (lambda g: g["inputs"][0].update(shape=[-1, 3.5]), "is a float, not a whole number"),
])
def test_damaged_graphs_get_one_line(change, text):
    graph = linear_graph(numpy.ones((2, 3), numpy.float32), numpy.ones(2, numpy.float32))
    change(graph)
    with pytest.raises(tidepool.Error) as caught:
        tidepool.from_graph(graph)
    assert text in str(caught.value) and "\n" not in str(caught.value)

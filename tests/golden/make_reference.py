#!/usr/bin/python3
"""Writes the reference gradients beside this file, with PyTorch in double precision.

Debian: python3-torch, python3-torchvision. README.md says what is stored and why; the
formula for weights, inputs and labels is the one of formula.h.
"""

import json
import math
import pathlib
import re

import numpy
import torch
import torchvision

BITS = (1 << 64) - 1


def name_key(name):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & BITS
    return value


def hashes(name, count):
    """Numbers 0 .. count-1 of the splitmix64 stream whose seed is the name's key."""
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(name_key(name)) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(
            0x9E3779B97F4A7C15
        )
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return z ^ (z >> numpy.uint64(31))


def uniform(name, count):
    return (hashes(name, count) >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-52 - 1.0


def rounded(values):
    """To single precision and back, so that both precisions start from the same numbers."""
    return values.astype(numpy.float32).astype(numpy.float64)


def parameter_values(name, shape):
    """Shifts near 1 keep most ReLUs away from their kink (see README.md)."""
    u = uniform(name, math.prod(shape))
    role = name.rsplit(".", 1)[1]
    if role == "weight":
        u = u * math.sqrt(3.0 / math.prod(shape[1:]))
    elif role == "scale":
        u = 0.75 + 0.1 * u
    elif role == "shift":
        u = 1.0 + 0.1 * u
    else:
        u = 0.1 * u
    return rounded(u).reshape(shape)


def input_values(shape):
    return torch.from_numpy(rounded(uniform("input", math.prod(shape))).reshape(shape))


def label_values(count, classes):
    return torch.from_numpy((hashes("labels", count) % numpy.uint64(classes)).astype(numpy.int64))


def norm(values):
    return float(numpy.sqrt(numpy.sum(values * values)))


def products(name, values):
    """Norm, and the products with four vectors of +1 and -1."""
    flat = values.reshape(-1)
    bits = hashes(name + "#signs", flat.size)
    dots = []
    for j in range(4):
        negative = (bits >> numpy.uint64(63 - j)) & numpy.uint64(1)
        dots.append(float(numpy.sum(numpy.where(negative == 1, -flat, flat))))
    return [norm(flat)] + dots


def write(file, model, batch, sample, loss, parameters, statistics):
    """parameters: {our name: (values, gradient)}, statistics: {our name: values}."""

    def line(row):
        return json.dumps([row[0]] + [float(f"{number:.13g}") for number in row[1:]])

    rows = [line([name, norm(value)] + products(name, gradient)) for name, (value, gradient) in parameters.items()]
    after = [line([name] + products(name, value)) for name, value in statistics.items()]
    head = {"model": model, "batch": batch, "sample": list(sample), "torch": torch.__version__, "loss": loss}
    text = json.dumps(head)[:-1]
    text += ',\n"parameters": [\n' + ",\n".join(rows) + '\n],\n"statistics": [\n' + ",\n".join(after) + "\n]}\n"
    json.loads(text)
    path = pathlib.Path(__file__).resolve().parent / file
    path.write_text(text)
    print(f"{file}: loss {loss:.9f}, {len(parameters)} parameters, {path.stat().st_size} bytes")


# --- torchvision's names -> ours

OUR_ROLE = {
    (False, "weight"): "weight",
    (False, "bias"): "bias",
    (True, "weight"): "scale",
    (True, "bias"): "shift",
    (True, "running_mean"): "running_mean",
    (True, "running_var"): "running_variance",
}


def renamed(rules, module, is_norm, role):
    for pattern, replacement in rules:
        match = re.fullmatch(pattern, module)
        if match:
            layer = replacement(match) if callable(replacement) else match.expand(replacement)
            return f"{layer}.{OUR_ROLE[is_norm, role]}"
    raise KeyError(module)


def plus_one(text):
    return int(text) + 1


RESNET_RULES = [
    (r"conv1|fc", r"\g<0>"),
    (r"bn1", "conv1.norm"),
    (r"layer(\d)\.(\d+)\.(conv\d)", lambda m: f"stage{m[1]}.block{plus_one(m[2])}.{m[3]}"),
    (r"layer(\d)\.(\d+)\.bn(\d)", lambda m: f"stage{m[1]}.block{plus_one(m[2])}.conv{m[3]}.norm"),
    (r"layer(\d)\.(\d+)\.downsample\.0", lambda m: f"stage{m[1]}.block{plus_one(m[2])}.projection"),
    (r"layer(\d)\.(\d+)\.downsample\.1", lambda m: f"stage{m[1]}.block{plus_one(m[2])}.projection.norm"),
]
INCEPTION_RULES = [
    (r"fc", "fc"),
    (r"Conv2d_(\d\w)_\dx\d\.conv", r"conv\1"),
    (r"Conv2d_(\d\w)_\dx\d\.bn", r"conv\1.norm"),
    (r"Mixed_(\d\w)\.(\w+)\.conv", r"mixed\1.\2"),
    (r"Mixed_(\d\w)\.(\w+)\.bn", r"mixed\1.\2.norm"),
]
DENSENET_RULES = [
    (r"classifier", "fc"),
    (r"features\.conv0", "conv0"),
    (r"features\.norm0", "conv0.norm"),
    (r"features\.denseblock(\d)\.denselayer(\d+)\.conv(\d)", r"block\1.layer\2.conv\3"),
    (r"features\.denseblock(\d)\.denselayer(\d+)\.norm(\d)", r"block\1.layer\2.conv\3.norm"),
    (r"features\.transition(\d)\.conv", r"transition\1"),
    (r"features\.transition(\d)\.norm", r"transition\1.norm"),
    (r"features\.norm5", "last.norm"),
]


def vision_step(network, rules, batch, sample, prepare=lambda tensor: tensor.double()):
    """Loss, {our name: (values, gradient)} and {our name: statistics}. `prepare` puts tensors where they compute."""
    network = network.train()
    for module in network.modules():
        for group in (module._parameters, module._buffers):
            for key, tensor in group.items():
                if tensor is not None and tensor.is_floating_point():
                    group[key] = torch.nn.Parameter(prepare(tensor.data)) if key in module._parameters else prepare(tensor)
    parameters, statistics = {}, {}
    for module_name, module in network.named_modules():
        is_norm = isinstance(module, torch.nn.BatchNorm2d)
        for role, parameter in module.named_parameters(recurse=False):
            name = renamed(rules, module_name, is_norm, role)
            assert name not in parameters
            values = parameter_values(name, tuple(parameter.shape))
            parameter.data.copy_(torch.from_numpy(values))
            parameters[name] = (values, parameter)
        if is_norm:
            for role in ("running_mean", "running_var"):
                statistics[renamed(rules, module_name, True, role)] = getattr(module, role)
    logits = network(prepare(input_values((batch, *sample))))
    labels = label_values(batch, logits.shape[1]).to(logits.device)
    loss = torch.nn.functional.cross_entropy(logits.to(next(network.parameters()).dtype), labels)
    loss.backward()
    gradients = {name: (values, parameter.grad.double().cpu().numpy()) for name, (values, parameter) in parameters.items()}
    return loss.item(), gradients, {name: values.double().cpu().numpy() for name, values in statistics.items()}


def vision_models():
    """File, our name, torchvision's network, names, batch and sample."""
    models = torchvision.models
    inception = models.inception_v3(weights=None, aux_logits=False, init_weights=False)
    inception.dropout.p = 0.0
    yield "resnet50.json", "resnet50", models.resnet50(weights=None), RESNET_RULES, 4, (3, 64, 64)
    yield "inception_v3.json", "inception-v3", inception, INCEPTION_RULES, 4, (3, 107, 123)
    yield "densenet121.json", "densenet121", models.densenet121(weights=None), DENSENET_RULES, 4, (3, 64, 64)


# --- the LSTM


def lstm(file, layers, hidden, steps, batch, features=50, classes=5000):
    network = torch.nn.LSTM(features, hidden, layers).double()
    output = torch.nn.Linear(hidden, classes).double()
    # torch keeps the gates i, f, g, o in one matrix; ours are i, g, o in one and f in another.
    rows = numpy.arange(4 * hidden).reshape(4, hidden)
    parts = {False: rows[[0, 2, 3]].reshape(-1), True: rows[1]}
    places = {}  # our name -> (torch's parameter, its rows)
    for layer in range(layers):
        prefix = f"layer{layer + 1}"
        for forget in (False, True):
            # Shared weights carry the name of the first layer that uses them: the forget gate and the
            # recurrent weights come into use at the second step.
            first = f"{prefix}.step2.forget_input" if forget else f"{prefix}.step1.input"
            second = f"{prefix}.step2.forget_hidden" if forget else f"{prefix}.step2.hidden"
            places[f"{first}.weight"] = (getattr(network, f"weight_ih_l{layer}"), parts[forget])
            places[f"{first}.bias"] = (getattr(network, f"bias_ih_l{layer}"), parts[forget])
            places[f"{second}.weight"] = (getattr(network, f"weight_hh_l{layer}"), parts[forget])
        getattr(network, f"bias_hh_l{layer}").data.zero_()  # ours has one bias
    places["output.step1.weight"] = (output.weight, numpy.arange(classes))
    places["output.step1.bias"] = (output.bias, numpy.arange(classes))

    values = {}
    for name, (parameter, part) in places.items():
        values[name] = parameter_values(name, (len(part), *parameter.shape[1:]))
        parameter.data[torch.from_numpy(part)] = torch.from_numpy(values[name])
    sample = (steps * features, 1, 1)
    x = input_values((batch, *sample)).reshape(batch, steps, features).transpose(0, 1)
    logits = output(network(x)[0]).transpose(0, 1).reshape(batch * steps, classes)
    loss = torch.nn.functional.cross_entropy(logits, label_values(batch * steps, classes))
    loss.backward()
    gradients = {name: (values[name], parameter.grad.numpy()[part]) for name, (parameter, part) in places.items()}
    write(file, f"lstm:{layers},{hidden},{steps}", batch, sample, loss.item(), gradients, {})


def main():
    for file, model, network, rules, batch, sample in vision_models():
        loss, gradients, statistics = vision_step(network, rules, batch, sample)
        write(file, model, batch, sample, loss, gradients, statistics)
    lstm("lstm.json", 2, 32, 5, 4)


if __name__ == "__main__":
    main()

"""One operator of a traced module, as the functions of words/ see it, and the table of those functions."""

import torch

from .. import Error
from .values import BATCH, Computed, Constant, Fill, Losses, Noise, Parameter, Step, Target

TABLE = {}  # by ATen's name, without overload and underscore


def word(*names):
    """Enters a function into the table. It takes an Operator and gives a value, a name of one, or a list of names."""
    def enter(function):
        for name in names:
            TABLE[name] = function
        return function
    return enter


HINTS = {
    "layer_norm": "torch.nn.GroupNorm(1, channels) is the nearest that there is",
    "native_layer_norm": "torch.nn.GroupNorm(1, channels) is the nearest that there is",
    "scaled_dot_product_attention": "attention is not there yet; convolutional networks are",
    "embedding": "there are layers for floats: give the embedded values as the sample",
    "lstm": "tidepool's own 'lstm:LAYERS,WIDTH,STEPS' is the nearest that there is",
    "gru": "tidepool's own 'lstm:LAYERS,WIDTH,STEPS' is the nearest that there is",
    "conv3d": "fold one axis into the batch or the channels, and use conv2d",
    "max_pool3d": "fold one axis into the batch or the channels, and use max_pool2d",
    "prelu": "its slope is trained; torch.nn.LeakyReLU is the nearest that there is",
    "rrelu": "torch.nn.LeakyReLU is the nearest that there is",
    "alpha_dropout": "torch.nn.Dropout is the nearest that there is",
    "upsample_bicubic2d": "mode='bilinear' is there",
    "l1_loss": "there are cross_entropy, binary_cross_entropy_with_logits and mse_loss",
    "smooth_l1_loss": "there are cross_entropy, binary_cross_entropy_with_logits and mse_loss",
    "huber_loss": "there are cross_entropy, binary_cross_entropy_with_logits and mse_loss",
    "kl_div": "cross_entropy with probabilities as targets differs from it by a constant",
    "binary_cross_entropy": "leave out the sigmoid, and use binary_cross_entropy_with_logits",
    "log": "of a softmax, use log_softmax; there is no other logarithm",
    "topk": "what is chosen by value has no layer; choose outside of the module",
    "argmax": "what is chosen by value has no layer; choose outside of the module",
    "where": "what is chosen by value has no layer; a clamp, a relu or a product with a mask may do",
    "masked_fill": "what is chosen by value has no layer; a clamp, a relu or a product with a mask may do",
    "index": "take whole ranges with a slice, or channels with torch.split",
    "index_select": "take whole ranges with a slice, or channels with torch.split",
    "roll": "torch.cat of two slices is the same",
    "einsum": "write it as torch.nn.Linear, a 1x1 convolution or an elementwise product",
    "bmm": "write it as torch.nn.Linear, a 1x1 convolution or an elementwise product",
    "gather": "take whole ranges with a slice, or channels with torch.split",
    "cumsum": "a convolution with a fixed kernel is the same for a fixed length",
    "std": "torch.nn.GroupNorm normalizes by deviations",
    "var": "torch.nn.GroupNorm normalizes by deviations",
}


class Operator:
    def __init__(self, importer, node, schema):
        self.importer, self.node, self.schema = importer, node, schema
        self.short = importer.short
        self.arguments = {}
        for place, argument in enumerate(schema.arguments):
            if argument.name in node.kwargs:
                self.arguments[argument.name] = node.kwargs[argument.name]
            elif place < len(node.args):
                self.arguments[argument.name] = node.args[place]
            elif argument.has_default_value():
                self.arguments[argument.name] = argument.default_value
            else:
                self.arguments[argument.name] = None
        self.first = schema.arguments[0].name if schema.arguments else ""

    def refuse(self, text):
        raise Error(f"{self.importer.where_of(self.node)}: {text}")

    # Arguments

    def has(self, name):
        return self.arguments.get(name) is not None

    def get(self, name, otherwise=None):
        """A plain argument; sizes that are computed come as numbers, the batch as BATCH."""
        value = self.arguments.get(name)
        return otherwise if value is None else self.plain(value)

    def plain(self, value):
        if isinstance(value, (list, tuple)):
            return [self.plain(item) for item in value]
        if isinstance(value, torch.fx.Node):
            example = value.meta.get("val")
            if isinstance(example, (int, float, bool)):
                return example
            if isinstance(example, (torch.SymInt, torch.SymFloat)):
                return BATCH if self.importer.is_batch(example) else example
        return value

    def value(self, name):
        argument = self.arguments.get(name)
        if isinstance(argument, torch.fx.Node) and argument in self.importer.cells:
            return self.importer.value_of(argument)
        return self.plain(argument)

    def values(self, name):
        return [self.importer.value_of(node) for node in self.arguments[name]]

    @property
    def x(self):
        return self.value(self.first)

    # Names of values in the graph

    def name(self, value):
        if isinstance(value, Computed):
            return self.importer.read(value)
        if isinstance(value, Parameter):
            return value.name
        if isinstance(value, Constant):
            return self.importer.constant_name(value)
        if isinstance(value, (bool, int, float)):
            return self.importer.constant(torch.tensor(float(value), dtype=torch.float64))
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            self.refuse("it computes with the number of samples; numbers must not depend on the batch")
        if isinstance(value, Fill) and value.number is not None:
            return self.importer.constant(torch.tensor(value.number, dtype=torch.float64))
        if isinstance(value, Fill):
            self.refuse("it reads memory that nobody has written to")
        if isinstance(value, Noise):
            self.refuse("it takes random numbers as they are; there are layers that drop values by them, such as "
                        "torch.nn.Dropout")
        self.refuse_losses(value)
        if isinstance(value, Target):
            self.refuse("it computes with targets and with what is made of the samples; the losses that do so are "
                        "cross_entropy, binary_cross_entropy_with_logits and mse_loss")
        self.refuse("one of its inputs is no value that a layer can work on")

    def refuse_losses(self, value):
        if isinstance(value, Losses):
            self.refuse("it works on a loss; a loss may only be added to others, and multiplied by positive numbers")

    def input(self, name):
        return self.name(self.value(name))

    def inputs(self, *names):
        """Those that are left out are empty; at the end they are not there."""
        result = [self.input(name) if self.has(name) else "" for name in names]
        while result and result[-1] == "":
            result.pop()
        return result

    def numbers(self, values):
        return self.importer.constant(torch.tensor([int(v) for v in values], dtype=torch.int64))

    # Results

    def emit(self, op, inputs, attributes=None, domain="", outputs=1):
        """Under this operator's name, whoever asks for it."""
        importer = self.importer
        current, short = importer.current, importer.short
        importer.current, importer.short = self.node, self.short
        try:
            return importer.emit(op, inputs, attributes, domain, outputs)
        finally:
            importer.current, importer.short = current, short

    @property
    def extents(self):
        return self.importer.extents(self.node.meta["val"])

    def extents_of(self, value):
        if isinstance(value, (Computed, Fill, Noise)):
            return value.extents
        if isinstance(value, (Parameter, Constant)):
            return tuple(value.tensor.shape)
        return ()

    def axis(self, given, rank=None):
        rank = len(self.extents_of(self.x)) if rank is None else rank
        return given + rank if given < 0 else given

    def reshaped(self, name, extents):
        if not extents or extents[0] != BATCH or BATCH in extents[1:]:
            self.refuse("it mixes the batch with other axes; there are layers that keep the batch as the first axis")
        return self.emit("Reshape", [name, self.numbers(extents)])

    def view(self, value, forward, backward=None, extents=None):
        """What shows `value` in another way. In-place operators write through it where there is a way back."""
        extents = self.extents if extents is None else extents
        if isinstance(value, Computed):
            return Computed(value.storage, extents, (*value.steps, Step(forward, backward)))
        if isinstance(value, Parameter):
            # Of arrays all extents are known: their own operator says what they look like then.
            return Parameter(forward(value.name), value.array, value.tensor.new_empty(self.node.meta["val"].shape))
        if isinstance(value, Fill):
            return Fill(extents, value.number)
        if isinstance(value, Noise):
            return Noise(extents, value.low, value.high, value.keep, value.factor)
        self.refuse_losses(value)
        self.refuse("it changes the form of something that is no value")


def load_words():
    from . import words  # noqa: F401


load_words()

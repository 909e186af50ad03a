"""Writes torch_names.txt: of models of torchvision and timm, how many arrays their state has, and one number made of
all their names and sizes, so that weight_names_test.cpp can compare without having thousands of names.

    python3 make_torch_names.py > torch_names.txt
"""

import timm
import torchvision

MODELS = torchvision.models
NETWORKS = {
    "resnet18": MODELS.resnet18,
    "resnet34": MODELS.resnet34,
    "resnet50": MODELS.resnet50,
    "resnet101": MODELS.resnet101,
    "resnet152": MODELS.resnet152,
    "resnext50": MODELS.resnext50_32x4d,
    "wide-resnet50": MODELS.wide_resnet50_2,
    "densenet121": MODELS.densenet121,
    "inception-v3": lambda: MODELS.inception_v3(aux_logits=False, init_weights=False),
    "vgg16": MODELS.vgg16,
    "vgg19": MODELS.vgg19,
    "mobilenet-v2": MODELS.mobilenet_v2,
    "mobilenet-v3-large": MODELS.mobilenet_v3_large,
    "mobilenet-v3-small": MODELS.mobilenet_v3_small,
    "efficientnet-b0": MODELS.efficientnet_b0,
    "efficientnet-b1": MODELS.efficientnet_b1,
    "efficientnet-b2": MODELS.efficientnet_b2,
    "efficientnet-b3": MODELS.efficientnet_b3,
    "efficientnet-b4": MODELS.efficientnet_b4,
    "regnet-y-400mf": MODELS.regnet_y_400mf,
    "regnet-y-800mf": MODELS.regnet_y_800mf,
    "regnet-x-400mf": MODELS.regnet_x_400mf,
    "regnet-x-800mf": MODELS.regnet_x_800mf,
    "shufflenet-v2": MODELS.shufflenet_v2_x1_0,
    "googlenet": lambda: MODELS.googlenet(aux_logits=False, init_weights=False),
    "squeezenet": MODELS.squeezenet1_1,
    "deeplab-v3": lambda: MODELS.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None),
}
TIMM = {
    "resnet50": "resnet50",
    "densenet121": "densenet121",
    "inception-v3": "inception_v3",
    **{f"efficientnet-b{i}": f"efficientnet_b{i}" for i in range(5)},
}


def fnv1a(text):
    number = 0xCBF29CE484222325
    for byte in text.encode():
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return number


def row(whose, model, module):
    state = {name: value for name, value in module.state_dict().items() if not name.endswith("num_batches_tracked")}
    # Auxiliary classifiers are left out.
    state = {name: value for name, value in state.items() if not name.startswith("AuxLogits.")}
    lines = sorted(f"{name} {value.numel()}\n" for name, value in state.items())
    print(whose, model, len(lines), f"{fnv1a(''.join(lines)):016x}")


if __name__ == "__main__":
    print(f"# torchvision {torchvision.__version__}, timm {timm.__version__}; whose, model, arrays, number")
    for name, make in NETWORKS.items():
        row("torchvision", name, make())
    for name, theirs in TIMM.items():
        row("timm", name, timm.create_model(theirs, pretrained=False))

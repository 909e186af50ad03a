"""Tidepool from Python, from nothing to a trained network: run it, read it, change it.

    python examples/first_steps.py [FOLDER]

FOLDER has a folder of JPEG or PNG files for each class; without it, the handwritten digits that come with Tidepool.
"""

import sys

import tidepool

# 1. A network. The zoo has many (tidepool.models()); "@10" makes it one of ten classes.
folder = sys.argv[1] if len(sys.argv) > 1 else "digits"
net = tidepool.network("digits" if folder == "digits" else "mobilenet-v2@10", input=None if folder == "digits" else (3, 64, 64))
print(net.name, "has", sum(layer["parameters"] for layer in net.layers(1)), "parameters")

# 2. How much memory does a training step take, and what if there is less? Nothing is run for that.
batch = 64 if folder == "digits" else 8
whole = tidepool.plan(net, batch)
print("a step of", batch, "samples takes", whole.summary["peak_bytes"], "bytes")
budget = whole.summary["peak_bytes"] * 2 // 3
print(tidepool.compare(net, batch, budget))

# 3. Too little is an error that says how much it takes.
try:
    tidepool.plan(net, batch, 1000)
except tidepool.Infeasible as error:
    print("1000 bytes:", error)

# 4. Train within two thirds. The weights are those of training without a budget, bit for bit.
session = tidepool.Session(net, batch, budget, optimizer="momentum")
report = session.train(folder, epochs=4, on_epoch=lambda epoch: print("epoch", epoch["epoch"], "loss", epoch["loss"]))
print("held out:", report["validation"])

# 5. Keep what was learned: a checkpoint to go on from, and weights for other programs.
session.save("first_steps.safetensors")
session.save_weights("first_steps_weights.safetensors")
print("saved; go on with: tide eval", net.name, "--resume first_steps.safetensors")

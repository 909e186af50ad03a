"""Tidepool's side of the GPU benchmarks: the command that trains a network on synthetic data."""


def train_command(program, model, batch, precision, steps, memory="", options=()):
    command = [str(program), "train", model, "--backend", "cuda", "--batch", str(batch), "--precision", precision,
               "--steps", str(steps), "--lr", "0.0001", "--json", *options]
    return command + (["--memory", str(memory)] if memory else [])


def last_line(text, otherwise="it said nothing"):
    """What a program that failed said last, on one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else otherwise

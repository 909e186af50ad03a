#!/usr/bin/python3
"""Writes data/digits.bin from scikit-learn's copy of the UCI digits (Debian: python3-sklearn).

The file, all numbers little-endian:
  8 bytes   "TIDEDIG1"
  4 x u32   count, height, width, classes
  count x height x width bytes   pixels, 0 (white) to 16 (black)
  count bytes                    labels
"""

import pathlib
import struct

import numpy
from sklearn.datasets import load_digits


def main():
    digits = load_digits()
    pixels = digits.images.astype(numpy.uint8)
    labels = digits.target.astype(numpy.uint8)
    assert (pixels == digits.images).all() and pixels.max() == 16 and labels.max() == 9
    count, height, width = pixels.shape
    path = pathlib.Path(__file__).resolve().parent.parent / "data" / "digits.bin"
    header = b"TIDEDIG1" + struct.pack("<4I", count, height, width, 10)
    path.write_bytes(header + pixels.tobytes() + labels.tobytes())
    print(f"{path.name}: {count} images of {height}x{width}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()

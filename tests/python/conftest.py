import numpy
import pytest

import tidepool


@pytest.fixture
def digits_batch():
    random = numpy.random.default_rng(1)
    return random.random((16, 1, 8, 8), dtype=numpy.float32), random.integers(0, 10, 16)


@pytest.fixture
def digits():
    return tidepool.network("digits")

// Arrays of numbers as samples, taken as they are.
#pragma once

#include "data/arrays/npy.h"
#include "data/dataset.h"

namespace tide {

// `x` has the samples, channels first; `y` a class for each (or for each position), or numbers, whichever the labels of
// the network are (`number_labels`). Throws an Error where they do not fit each other or `sample`.
[[nodiscard]] DatasetPtr number_dataset(NumberArray x, NumberArray y, const Shape& sample, bool number_labels);

}  // namespace tide

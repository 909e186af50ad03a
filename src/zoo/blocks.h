// Groups of layers that several models are made of. A group called "c" makes the layers
// "c" (convolution), "c.norm" and "c.relu".
#pragma once

#include <span>
#include <string>

#include "network/builder.h"

namespace tide {

// Without a bias: the batch norm behind it would cancel it.
Value plain_convolution(Builder& net, Value x, std::int64_t channels, const Window& window, const std::string& name);
Value convolution_norm(Builder& net, Value x, std::int64_t channels, const Window& window, const std::string& name,
                       const BatchNormOptions& norm = {});
Value convolution_norm_relu(Builder& net, Value x, std::int64_t channels, const Window& window, const std::string& name,
                            const BatchNormOptions& norm = {});
// "name.norm", "name.relu", then the convolution "name".
Value norm_relu_convolution(Builder& net, Value x, std::int64_t channels, const Window& window,
                            const std::string& name);
// Global average pool, fully connected ("fc") and loss ("softmax").
void classify(Builder& net, Value x, std::int64_t classes, double dropout = 0);
// The five stages of VGG, `convolutions` in each, every stage ended by a pool.
Value vgg_stages(Builder& net, Value x, std::span<const std::int64_t, 5> convolutions);

}  // namespace tide

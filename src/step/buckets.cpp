#include "step/buckets.h"

#include <algorithm>
#include <map>

namespace tide {

std::vector<std::vector<ParameterId>> buckets_of(const Network& network, Bytes size) {
  std::vector<bool> trained(network.parameters.size(), false);
  for (const Layer& layer : network.layers)
    if (!layer.frozen)
      for (const LayerParameter& parameter : layer.parameters) trained[parameter.id.index()] = true;
  std::vector<std::vector<ParameterId>> buckets;
  Bytes filled = size;
  for (std::size_t p = trained.size(); p-- > 0;) {
    if (!trained[p]) continue;
    if (filled >= size) {
      buckets.emplace_back();
      filled = {};
    }
    buckets.back().push_back(ParameterId(p));
    filled += bytes_of(network.parameters[p].shape, DataType::f32);
  }
  return buckets;
}

bool is_bucket(const Tensor& tensor) {
  return tensor.tensor_class == TensorClass::parameter_gradient && !tensor.parameter.valid();
}

void lay_out_buckets(Step& step, const std::function<Bytes(ParameterId)>& bytes) {
  std::map<StorageId, std::vector<ViewId>> parts;  // by bucket, in the order in which they lie
  for (const Operand& operand : step.operands) {
    const Tensor& tensor = step.tensor(operand.tensor);
    if (!operand.view.valid() || !is_bucket(tensor)) continue;
    std::vector<ViewId>& views = parts[tensor.storage];
    if (std::ranges::find(views, operand.view) == views.end()) views.push_back(operand.view);
  }
  for (auto& [storage, views] : parts) {
    std::ranges::sort(views, {}, [&](ViewId id) { return step.view(id).offset; });
    Bytes end;
    for (const ViewId id : views) {
      View& view = step.views[id.index()];
      view.offset = end;
      view.bytes = bytes(view.parameter);
      end += view.bytes.aligned();
    }
    step.storages[storage.index()].bytes = end;
    for (Tensor& tensor : step.tensors)
      if (tensor.storage == storage) tensor.shape = Shape{end.count() / element_bytes(tensor.type)};
  }
}

}  // namespace tide

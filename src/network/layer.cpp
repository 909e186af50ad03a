#include "network/layer.h"

namespace tide {

ParameterId Layer::parameter(ParameterRole role) const {
  for (const LayerParameter& parameter : is_statistic(role) ? statistics : parameters)
    if (parameter.role == role) return parameter.id;
  return {};
}

}  // namespace tide

// Functions of single elements whose slope follows from their result.
#include "network/kind.h"

namespace tide {
namespace {

KindDescription elementwise_kind() {
  KindDescription kind;
  kind.shapes = same_shape;
  kind.forward = {{reads(Role::x), writes(Role::y)}, {{Role::x, Role::y}}};
  kind.backward = {
      {reads(Role::x, When::superneurons), reads(Role::y), reads(Role::dy), writes(Role::dx, When::always, Role::dy)},
      {{Role::dy, Role::dx}, {Role::y, Role::dx}}};
  kind.paper_type = PaperType::activation;
  return kind;
}

}  // namespace

KindDescription describe_relu() { return elementwise_kind(); }

KindDescription describe_sigmoid() {
  KindDescription kind = elementwise_kind();
  kind.flops_per_element = 10;
  return kind;
}

KindDescription describe_tanh() { return describe_sigmoid(); }

}  // namespace tide

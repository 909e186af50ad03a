#include "report/resnet_depth.h"

#include <charconv>

#include "base/error.h"

namespace tide {
namespace {

constexpr std::string_view kFamily = "resnet:";

}  // namespace

bool has_unknown(std::string_view model) {
  const std::size_t at = model.find('?');
  if (at == std::string_view::npos) return false;
  if (!model.starts_with(kFamily) || model.find('?', at + 1) != std::string_view::npos)
    throw Error("'{}': the depth of one stage of a ResNet can be asked for; write resnet:6,32,?,6", model);
  return true;
}

std::string with_unknown(std::string_view model, std::int64_t n) {
  const std::size_t at = model.find('?');
  return fmt::format("{}{}{}", model.substr(0, at), n, model.substr(at + 1));
}

std::int64_t residual_depth(std::string_view model) {
  std::int64_t blocks = 0;
  const char* at = model.data() + kFamily.size();
  const char* const end = model.data() + model.size();
  while (at < end) {
    std::int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) throw Error("'{}' has a stage without a number", model);
    blocks += number;
    if (next == end || *next == '@') break;
    at = next + 1;
  }
  return 3 * blocks + 2;
}

}  // namespace tide

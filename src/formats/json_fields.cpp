#include "formats/json_fields.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>

#include "base/error.h"

namespace tide {
namespace {

using nlohmann::json;

// Cut there, a text is still recognized.
constexpr std::size_t kLongestQuote = 80;

// The library would wrap numbers from 2^63 on silently.
std::optional<std::int64_t> whole_number(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kLargest) return std::nullopt;
  return value.get<std::int64_t>();
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::string in_quotes(std::string_view text) {
  const bool cut = text.size() > kLongestQuote;
  return json(std::string(text.substr(0, kLongestQuote))).dump(-1, ' ', true, json::error_handler_t::replace) +
         (cut ? "..." : "");
}

JsonFields::JsonFields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) throw Error("{}: expected an object {{...}}, found {}", where_, object_.type_name());
}

const json* JsonFields::find(const char* key) {
  const auto found = object_.find(key);
  if (found == object_.end()) return nullptr;
  fetched_.emplace_back(key);
  return &*found;
}

void JsonFields::wrong_type(const char* key, std::string_view wanted) const {
  throw Error("{}: field '{}' must be {}", where_, key, wanted);
}

std::int64_t JsonFields::integer(const char* key, std::int64_t otherwise) {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  const std::optional<std::int64_t> number = whole_number(*value);
  if (!number) wrong_type(key, "a whole number below 2^63");
  return *number;
}

double JsonFields::number(const char* key, double otherwise) {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) wrong_type(key, "a number");
  return value->get<double>();
}

bool JsonFields::boolean(const char* key, bool otherwise) {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) wrong_type(key, "true or false");
  return value->get<bool>();
}

std::string JsonFields::text(const char* key, const std::string& otherwise) {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) wrong_type(key, "a text");
  const auto& text = value->get_ref<const std::string&>();
  if (std::any_of(text.begin(), text.end(), is_control)) wrong_type(key, "free of control characters");
  return text;
}

const json* JsonFields::array(const char* key) {
  const json* value = find(key);
  if (value != nullptr && !value->is_array()) wrong_type(key, "a list [...]");
  return value;
}

std::vector<std::string> JsonFields::texts(const char* key) {
  std::vector<std::string> result;
  const json* list = array(key);
  if (list == nullptr) return result;
  for (const json& item : *list) {
    if (!item.is_string()) wrong_type(key, "a list of texts");
    result.push_back(item.get<std::string>());
    if (std::any_of(result.back().begin(), result.back().end(), is_control))
      wrong_type(key, "free of control characters");
  }
  return result;
}

std::vector<std::int64_t> JsonFields::integers(const char* key) {
  std::vector<std::int64_t> result;
  const json* list = array(key);
  if (list == nullptr) return result;
  for (const json& item : *list) {
    const std::optional<std::int64_t> number = whole_number(item);
    if (!number) wrong_type(key, "a list of whole numbers below 2^63");
    result.push_back(*number);
  }
  return result;
}

void JsonFields::finish() const {
  for (const auto& [key, value] : object_.items())
    if (std::find(fetched_.begin(), fetched_.end(), key) == fetched_.end())
      throw Error("{}: unknown field {}; remove it or correct its name", where_, in_quotes(key));
}

namespace {

// Refuses an object in which a key stands twice. The library's own callbacks could do that
// too, but take quadratic time for large objects.
class UniqueKeys final : public nlohmann::json_sax<json> {
 public:
  explicit UniqueKeys(const std::string& source) : source_(source) {}

  bool start_object(std::size_t /*elements*/) override {
    open_.emplace_back();
    return true;
  }
  bool end_object() override {
    open_.pop_back();
    return true;
  }
  bool key(string_t& name) override {
    if (!open_.back().insert(name).second)
      throw Error("{}: field {} stands twice in one object; remove one", source_, in_quotes(name));
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_array(std::size_t /*elements*/) override { return true; }
  bool end_array() override { return true; }
  // Stops here without a word: the parser proper comes to the same place and reports it.
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const json::exception& /*error*/) override {
    return false;
  }

 private:
  const std::string& source_;
  std::vector<std::unordered_set<std::string>> open_;
};

}  // namespace

json parse_json(std::string_view text, const std::string& source) {
  try {
    UniqueKeys keys(source);
    json::sax_parse(text.begin(), text.end(), &keys);
    return json::parse(text.begin(), text.end());
  } catch (const json::parse_error& error) {
    const std::string_view before = text.substr(0, std::min(error.byte, text.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const bool truncated = error.byte > text.size();
    throw Error("{}: not JSON at line {}; {}", source, line,
                truncated ? "the file ends too early, is it complete?" : "check the brackets, commas and quotes there");
  } catch (const json::exception&) {
    throw Error("{}: a number in it is too large; check the sizes", source);
  }
}

}  // namespace tide

// The fields of one JSON object of an untrusted file: each is fetched with its type and
// range checked, and what nobody fetched is an error.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tide {

class JsonFields {
 public:
  // `where` begins every message ("net.json, layer 'c1'"). `object` must outlive this.
  JsonFields(const nlohmann::json& object, std::string where);

  void set_where(std::string where) { where_ = std::move(where); }
  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }

  // The field, or `otherwise` where there is none.
  std::int64_t integer(const char* key, std::int64_t otherwise);
  double number(const char* key, double otherwise);
  bool boolean(const char* key, bool otherwise);
  // Free of control characters, so that messages stay on one line.
  std::string text(const char* key, const std::string& otherwise = "");
  std::vector<std::string> texts(const char* key);
  std::vector<std::int64_t> integers(const char* key);
  // Null where there is none.
  const nlohmann::json* array(const char* key);

  // Throws an Error for a field that was not fetched.
  void finish() const;

 private:
  const nlohmann::json* find(const char* key);
  [[noreturn]] void wrong_type(const char* key, std::string_view wanted) const;

  const nlohmann::json& object_;
  std::string where_;
  std::vector<std::string_view> fetched_;
};

// As a JSON string: one line, whatever it contains; cut where it is long.
[[nodiscard]] std::string in_quotes(std::string_view text);

// Parses text that may be anything; duplicate fields are refused. Throws an Error that
// begins with `source` and says where the text is not JSON.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& source);

}  // namespace tide

#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json_position.h"

namespace motley {
namespace {

constexpr int kMaxDepth = 32;

Error json_error(const std::string& source, const std::string& cause) {
  return {ErrorCode::kCorrupt, fmt::format("unreadable JSON, {}", source), cause,
          "correct it, or generate it again"};
}

// The library's message without its own name and position prefix, which our errors format
// themselves.
std::string cause_of(std::string_view text) {
  constexpr std::size_t kCauseMax = 300;
  const std::size_t column = text.find("column ");
  const std::size_t colon = text.find(column == std::string_view::npos ? "] " : ": ",
                                      column == std::string_view::npos ? 0 : column);
  return excerpt(colon == std::string_view::npos ? text : text.substr(colon + 2), kCauseMax);
}

// Builds the value. The library's own builder searches all earlier keys of an object for each new
// key, which takes hours for a hostile file; here the keys are known to be distinct.
class Builder : public nlohmann::json_sax<Json> {
 public:
  [[nodiscard]] Json take() { return std::move(root_); }

  [[nodiscard]] std::size_t error_offset() const { return error_offset_; }

  [[nodiscard]] const std::string& error() const { return error_; }

  bool null() override { return add(nullptr); }

  bool boolean(bool value) override { return add(value); }

  bool number_integer(number_integer_t value) override { return add(value); }

  bool number_unsigned(number_unsigned_t value) override { return add(value); }

  bool number_float(number_float_t value, const string_t&) override { return add(value); }

  bool string(string_t& value) override { return add(std::move(value)); }

  bool binary(binary_t&) override { return false; }  // not in JSON text

  bool start_object(std::size_t) override { return open(Json::object()); }

  bool start_array(std::size_t) override { return open(Json::array()); }

  bool end_object() override { return close(); }

  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    key_ = std::move(key);
    return true;
  }

  bool parse_error(std::size_t end,
                   const std::string& token,
                   const Json::exception& error) override {
    error_offset_ = end - std::min(end, std::max<std::size_t>(token.size(), 1));
    error_ = cause_of(error.what());
    return false;
  }

 private:
  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
    } else {
      open_.back()->get_ref<Json::object_t&>().emplace_back(std::move(key_), std::move(value));
    }
    return true;
  }

  bool open(Json container) {
    Json* parent = open_.empty() ? nullptr : open_.back();
    add(std::move(container));
    if (parent == nullptr) {
      open_.push_back(&root_);
    } else if (parent->is_array()) {
      open_.push_back(&parent->back());
    } else {
      open_.push_back(&parent->get_ref<Json::object_t&>().back().second);
    }
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;  // only the innermost grows, so the pointers stay valid
  string_t key_;
  std::size_t error_offset_ = 0;
  std::string error_;
};

template <class T>
bool has_type(const Json& value) {
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_same_v<T, std::int64_t>) return value.is_number_integer();
  if constexpr (std::is_same_v<T, double>) return value.is_number();
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
}

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& source) {
  if (const auto flaw = find_json_flaw(text, kMaxDepth)) {
    return json_error(at_position(source, position_of(text, flaw->offset)), flaw->cause);
  }
  Builder builder;
  if (Json::sax_parse(text, &builder)) return builder.take();
  return json_error(at_position(source, position_of(text, builder.error_offset())),
                    builder.error());
}

template <class T>
Result<T> json_get(const Json& object, const char* key, const std::string& source) {
  if (!object.is_object()) return json_error(source, "an object was expected");
  const auto it = object.find(key);
  if (it == object.end()) return json_error(source, fmt::format("key '{}' is missing", key));
  if (!has_type<T>(*it)) return json_error(source, fmt::format("key '{}' has the wrong type", key));
  if constexpr (std::is_same_v<T, std::int64_t>) {
    // A value that fits only unsigned would become negative.
    if (it->is_number_unsigned() && !std::in_range<T>(it->template get<std::uint64_t>())) {
      return json_error(source, fmt::format("key '{}' is too large, {}", key, it->dump()));
    }
  }
  return it->template get<T>();
}

template Result<bool> json_get<bool>(const Json&, const char*, const std::string&);
template Result<std::int64_t> json_get<std::int64_t>(const Json&, const char*, const std::string&);
template Result<double> json_get<double>(const Json&, const char*, const std::string&);
template Result<std::string> json_get<std::string>(const Json&, const char*, const std::string&);

}  // namespace motley

#include "base/json_position.h"

#include <fmt/format.h>

#include <set>

#include "base/json.h"

namespace motley {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Scans the tokens of text that is probably JSON. Never reads beyond its end.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  [[nodiscard]] std::size_t offset() const { return at_; }

  // Returns the next character that is not white space, or '\0' at the end.
  char peek() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  // A string with its quotes, a scalar, or one punctuation character. REQUIRES: peek() != 0.
  std::string_view token() {
    const std::size_t begin = at_;
    if (text_[at_] == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\') ++at_;
      }
      at_ = std::min(at_ + 1, text_.size());
      return text_.substr(begin, at_ - begin);
    }
    constexpr std::string_view kEnds = "{}[],:\"";
    while (at_ < text_.size() && !is_space(text_[at_]) &&
           kEnds.find(text_[at_]) == std::string_view::npos) {
      ++at_;
    }
    if (at_ == begin) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // Skips a whole value by counting brackets, so that deep nesting uses no stack.
  void skip_value() {
    std::size_t depth = 0;
    do {
      if (peek() == '\0') return;
      const std::string_view word = token();
      if (word == "{" || word == "[") ++depth;
      if ((word == "}" || word == "]") && depth > 0) --depth;
    } while (depth > 0);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

std::string unquoted(std::string_view token) {
  if (token.find('\\') == std::string_view::npos && token.size() >= 2) {
    return std::string(token.substr(1, token.size() - 2));
  }
  const Json value = Json::parse(token, nullptr, false);
  return value.is_string() ? value.get<std::string>() : std::string(token);
}

// Moves to the value of a key or an index in the container that begins here.
bool enter(JsonScanner& scanner, const std::variant<std::string, std::size_t>& step) {
  const auto* key = std::get_if<std::string>(&step);
  if (scanner.peek() != (key != nullptr ? '{' : '[')) return false;
  (void)scanner.token();
  for (std::size_t index = 0;; ++index) {
    const char next = scanner.peek();
    if (next == '\0' || next == '}' || next == ']') return false;
    bool found = key == nullptr && index == std::get<std::size_t>(step);
    if (key != nullptr) {
      found = next == '"' && unquoted(scanner.token()) == *key;
      if (scanner.peek() != ':') return false;
      (void)scanner.token();
      (void)scanner.peek();
    }
    if (found) return true;
    scanner.skip_value();
    if (scanner.peek() != ',') return false;
    (void)scanner.token();
  }
}

}  // namespace

std::string describe(const JsonPath& path) {
  std::string text;
  for (const auto& step : path) {
    if (const auto* key = std::get_if<std::string>(&step)) {
      text += fmt::format("{}{}", text.empty() ? "" : ".", excerpt(*key));
    } else {
      text += fmt::format("[{}]", std::get<std::size_t>(step));
    }
  }
  return text;
}

std::optional<SourcePosition> json_position(std::string_view text, const JsonPath& path) {
  JsonScanner scanner(text);
  for (const auto& step : path) {
    if (!enter(scanner, step)) return std::nullopt;
  }
  if (scanner.peek() == '\0') return std::nullopt;
  return position_of(text, scanner.offset());
}

std::optional<JsonFlaw> find_json_flaw(std::string_view text, int depth_max) {
  struct Open {
    bool object = false;
    bool key_next = false;
    std::set<std::string> keys = {};
  };

  std::vector<Open> open;
  JsonScanner scanner(text);
  for (char next = scanner.peek(); next != '\0'; next = scanner.peek()) {
    const std::size_t offset = scanner.offset();
    const std::string_view token = scanner.token();
    if (next == '{' || next == '[') {
      open.push_back({next == '{', next == '{'});
      if (open.size() > static_cast<std::size_t>(depth_max)) {
        return JsonFlaw{offset, fmt::format("nested deeper than {} levels", depth_max)};
      }
    } else if (next == '}' || next == ']') {
      if (!open.empty()) open.pop_back();
    } else if (next == ',') {
      if (!open.empty()) open.back().key_next = open.back().object;
    } else if (next == '"' && !open.empty() && open.back().key_next) {
      open.back().key_next = false;
      const std::string key = unquoted(token);
      if (open.back().keys.insert(key).second) continue;
      return JsonFlaw{offset, fmt::format("duplicate key '{}' in one object", excerpt(key))};
    }
  }
  return std::nullopt;
}

std::string JsonSource::where(const JsonPath& path) const {
  const auto place = json_position(text_, path);
  return place ? at_position(name_, *place) : name_;
}

}  // namespace motley

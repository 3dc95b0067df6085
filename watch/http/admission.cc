#include "watch/http/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace motley {
namespace {

// Compares in constant time, so that timing does not reveal the token.
bool is_token(std::string_view given, std::string_view token) {
  unsigned char differ = given.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const char other = i < given.size() ? given[i] : '\0';
    differ = static_cast<unsigned char>(differ | (token[i] ^ other));
  }
  return differ == 0 && !token.empty();
}

// Returns the part before the separator and leaves the rest in `text`.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::optional<std::string_view> value_of(std::string_view pair, std::string_view key) {
  if (!pair.starts_with(key) || pair.size() <= key.size() || pair[key.size()] != '=') return {};
  return pair.substr(key.size() + 1);
}

bool is_own_name(std::string_view host, std::uint16_t port) {
  return host == fmt::format("127.0.0.1:{}", port) || host == fmt::format("localhost:{}", port);
}

bool is_own_origin(std::string_view origin, std::uint16_t port) {
  constexpr std::string_view kScheme = "http://";
  return origin.starts_with(kScheme) && is_own_name(origin.substr(kScheme.size()), port);
}

bool is_plain(std::string_view target) {
  return target.starts_with('/') &&
         std::ranges::all_of(target, [](char c) { return c > ' ' && c < '\x7f'; });
}

// A web page cannot make a browser add this header to a cross-origin request.
bool has_bearer(std::string_view authorization, const AccessRules& access_rules) {
  constexpr std::string_view kScheme = "Bearer ";
  return authorization.starts_with(kScheme) &&
         is_token(authorization.substr(kScheme.size()), access_rules.token);
}

bool has_cookie(std::string_view cookies, const AccessRules& access_rules) {
  const std::string name = cookie_name(access_rules);
  bool found = false;
  while (!cookies.empty()) {
    std::string_view pair = take_part(cookies, ';');
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    const auto value = value_of(pair, name);
    found = found || (value && is_token(*value, access_rules.token));
  }
  return found;
}

// The checks before the token's: malformed or misdirected requests.
std::optional<Refused> malformed(const RequestHead& request, const AccessRules& access_rules) {
  if (request.repeats_a_field) return Refused{400, "duplicate field in the request"};
  if (!is_own_name(request.host, access_rules.port)) {
    return Refused{403, "this server answers only to 127.0.0.1 and localhost with its port"};
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return Refused{405, "this server accepts only GET and HEAD"};
  }
  if (request.has_body) return refused_body();
  if (request.target.size() > kTargetBytesMax) return Refused{414, "the address is too long"};
  if (!is_plain(request.target)) return Refused{400, "the address is not a path"};
  if (!request.origin.empty() && !is_own_origin(request.origin, access_rules.port)) {
    return Refused{403, "other pages have no access to this server"};
  }
  return std::nullopt;
}

}  // namespace

std::string cookie_name(const AccessRules& access_rules) {
  return fmt::format("motley_{}", access_rules.port);
}

Refused refused_body() {
  return {413, "requests with a body are not accepted"};
}

std::variant<Admitted, Refused> admit(const RequestHead& request, const AccessRules& access_rules) {
  if (auto refused = malformed(request, access_rules)) return *std::move(refused);
  std::string_view query = request.target;
  Admitted admitted;
  admitted.path = take_part(query, '?');
  admitted.head_only = request.method == "HEAD";
  while (!query.empty()) {
    const std::string_view pair = take_part(query, '&');
    if (const auto token = value_of(pair, "token")) {
      admitted.has_token_in_address =
          admitted.has_token_in_address || is_token(*token, access_rules.token);
    } else {
      if (!admitted.query.empty()) admitted.query += '&';
      admitted.query += pair;
    }
  }
  if (admitted.has_token_in_address || has_bearer(request.authorization, access_rules))
    return admitted;
  // A page on another port of this machine is same-site to a browser, which then adds the cookie;
  // Sec-Fetch-Site distinguishes its requests.
  if (!request.fetch_site.empty() && request.fetch_site != "same-origin" &&
      request.fetch_site != "none") {
    return Refused{403, "other pages have no access to this server"};
  }
  if (!has_cookie(request.cookie, access_rules)) {
    return Refused{401, "open the address printed by motley watch: its token grants access"};
  }
  return admitted;
}

std::variant<std::uint64_t, Refused> number_of_query(std::string_view query,
                                                     std::string_view key,
                                                     std::uint64_t fallback,
                                                     std::uint64_t low,
                                                     std::uint64_t high) {
  while (!query.empty()) {
    const auto value = value_of(take_part(query, '&'), key);
    if (!value) continue;
    std::uint64_t number = 0;
    const char* end = value->data() + value->size();
    const auto [stopped, failure] = std::from_chars(value->data(), end, number);
    if (failure != std::errc() || stopped != end || number < low || number > high) {
      return Refused{400, fmt::format("{} is a whole number from {} to {}", key, low, high)};
    }
    return number;
  }
  return fallback;
}

}  // namespace motley

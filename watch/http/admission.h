// Admission of requests to the page's server. Pure. It alone decides what other local users, and
// other web pages in the user's browser, may not do; it is tested without a socket.
//
// A request needs the token. It is in the printed address, afterwards in a cookie, or in programs'
// "Authorization: Bearer TOKEN". In addition the Host must be a name of this machine (a foreign
// name that resolves to 127.0.0.1 is refused), and a cross-site request is refused even if the
// browser adds the cookie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace motley {

inline constexpr std::size_t kTargetBytesMax = 1024;

// The fields of a request that decide its admission, as received.
struct RequestHead {
  std::string_view method;
  std::string_view target;
  std::string_view host;
  std::string_view origin;      // empty: not sent
  std::string_view fetch_site;  // Sec-Fetch-Site; empty: not sent
  std::string_view cookie;
  std::string_view authorization;
  bool has_body = false;
  bool repeats_a_field = false;  // one of the fields above is repeated
};

struct AccessRules {
  std::uint16_t port = 0;
  std::string token;  // hexadecimal
};

struct Admitted {
  std::string path;   // begins with '/'; not decoded
  std::string query;  // without the token
  bool head_only = false;
  bool has_token_in_address = false;  // the token was in the address: the response sets the cookie
};

struct Refused {
  unsigned status = 400;
  std::string why;  // one sentence for the user
};

[[nodiscard]] Refused refused_body();

[[nodiscard]] std::variant<Admitted, Refused> admit(const RequestHead& request,
                                                    const AccessRules& access_rules);

// The cookie's name, "motley_PORT". Cookies are shared by all ports of a host, so the name contains
// the port.
[[nodiscard]] std::string cookie_name(const AccessRules& access_rules);

// `fallback` if the query has no such key; Refused if its value is not a whole number in [low,
// high].
[[nodiscard]] std::variant<std::uint64_t, Refused> number_of_query(std::string_view query,
                                                                   std::string_view key,
                                                                   std::uint64_t fallback,
                                                                   std::uint64_t low,
                                                                   std::uint64_t high);

}  // namespace motley

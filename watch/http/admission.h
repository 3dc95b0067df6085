// Which requests the server of the page answers at all. Pure: what a stranger on this machine, or a
// web page of somebody else in the person's own browser, may not do is decided here and nowhere
// else, and tested without a socket.
//
// The token is what lets in. It comes in the address that was printed, in a cookie afterwards, or
// from programs as "Authorization: Bearer TOKEN". Besides, the name that the browser asked for must
// be this machine's own (a page of another name that resolves to 127.0.0.1 is refused), and a
// request that another page caused is refused even where the browser adds the cookie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace motley {

inline constexpr std::size_t kTargetBytesMax = 1024;

// Of a request, what decides. Texts are as they came.
struct RequestHead {
  std::string_view method;
  std::string_view target;
  std::string_view host;
  std::string_view origin;      // empty: none was sent
  std::string_view fetch_site;  // Sec-Fetch-Site; empty: none was sent
  std::string_view cookie;
  std::string_view authorization;
  bool has_body = false;
  bool repeats_a_field = false;  // one of those above came twice
};

struct Door {
  std::uint16_t port = 0;
  std::string token;  // hexadecimal
};

struct Admitted {
  std::string path;   // begins with '/'; nothing in it is decoded
  std::string query;  // without the token
  bool head_only = false;
  bool came_by_address = false;  // the token was in the address: the answer gives the cookie
};

struct Refused {
  unsigned status = 400;
  std::string why;  // one sentence for a person
};

[[nodiscard]] Refused refused_body();

[[nodiscard]] std::variant<Admitted, Refused> admit(const RequestHead& request, const Door& door);

// What the browser keeps: "motley_PORT". Cookies do not tell ports apart, so the name does.
[[nodiscard]] std::string cookie_name(const Door& door);

// `fallback` where the query has no such key; nothing where its value is no whole number in
// [low, high].
[[nodiscard]] std::variant<std::uint64_t, Refused> number_of_query(std::string_view query,
                                                                   std::string_view key,
                                                                   std::uint64_t fallback,
                                                                   std::uint64_t low,
                                                                   std::uint64_t high);

}  // namespace motley

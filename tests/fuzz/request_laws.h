// The properties of requests to the server of a run's page. An input has one line each for a
// request's method, address, host, origin, cause, cookies and authorization.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/laws.h"
#include "watch/http/admission.h"

namespace motley {

inline constexpr std::string_view kLawHost = "127.0.0.1:4711";
inline constexpr std::string_view kLawCookie = "motley_4711=00112233445566778899aabbccddeeff";

inline AccessRules tested_access_rules() {
  return {4711, "00112233445566778899aabbccddeeff"};
}

inline std::string right_request() {
  return "GET\n/api/history?points=100&token=" + tested_access_rules().token + "\n" +
         std::string(kLawHost) + "\nhttp://localhost:4711\nsame-origin\na=b; " +
         std::string(kLawCookie) + "\nBearer " + tested_access_rules().token + "\n";
}

inline const std::vector<std::string>& fragments_of_requests() {
  static const std::vector<std::string> fragments = {"\n",
                                                     "?",
                                                     "&",
                                                     "=",
                                                     ";",
                                                     "; ",
                                                     "/",
                                                     "//",
                                                     "/..",
                                                     "%2e%2e",
                                                     "%00",
                                                     "token=",
                                                     "motley_4711=",
                                                     "Bearer ",
                                                     "points=",
                                                     "HEAD",
                                                     "POST",
                                                     "null",
                                                     "cross-site",
                                                     "evil.example",
                                                     "localhost:4711",
                                                     ":4711",
                                                     tested_access_rules().token,
                                                     tested_access_rules().token.substr(1),
                                                     std::string(2000, 'a')};
  return fragments;
}

inline RequestHead request_head(std::string_view text) {
  std::array<std::string_view, 7> lines;
  for (std::string_view& line : lines) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {.method = lines[0],
          .target = lines[1],
          .host = lines[2],
          .origin = lines[3],
          .fetch_site = lines[4],
          .cookie = lines[5],
          .authorization = lines[6]};
}

// The conditions for an admitted request, checked on its texts alone.
inline std::string wrong_with_admitted(const RequestHead& request, const Admitted& admitted) {
  const std::string token = tested_access_rules().token;
  const bool in_address = request.target.find("token=" + token) != std::string_view::npos;
  const bool in_cookie = request.cookie.find("motley_4711=" + token) != std::string_view::npos;
  const bool in_authorization = request.authorization == "Bearer " + token;
  if (!in_address && !in_cookie && !in_authorization) return "let in without the token";
  if (admitted.has_token_in_address && !in_address) return "a token that the address does not have";
  if (request.host != kLawHost && request.host != "localhost:4711") return "another host let in";
  if (request.method != "GET" && request.method != "HEAD") return "another method let in";
  if (!request.origin.empty() && request.origin != "http://127.0.0.1:4711" &&
      request.origin != "http://localhost:4711") {
    return "another page let in";
  }
  if (!admitted.path.starts_with('/')) return "a path without its beginning";
  if (!request.target.starts_with(admitted.path)) return "a path that was not asked for";
  if (admitted.query.find("token=" + token) == 0) return "the token is handed on";
  return "";
}

inline std::string wrong_with_request(std::string_view text) {
  const RequestHead request = request_head(text);
  const auto decided = admit(request, tested_access_rules());
  if (const auto* admitted = std::get_if<Admitted>(&decided)) {
    return wrong_with_admitted(request, *admitted);
  }
  const auto& refused = std::get<Refused>(decided);
  if (refused.status < 400 || refused.status > 499) return "refused with no such status";
  return refused.why.empty() || refused.why.size() > 200 ? "refused without saying why" : "";
}

}  // namespace motley

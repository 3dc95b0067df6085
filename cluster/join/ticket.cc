#include "cluster/join/ticket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/hex.h"

namespace motley {
namespace {

constexpr std::string_view kScheme = "motley1:";
constexpr std::size_t kTextBytesMax = 4096;
constexpr std::size_t kAddressesMax = 32;
constexpr std::size_t kFingerprintBytes = 32;

Error bad_ticket(const std::string& cause) {
  return {ErrorCode::kUsage, "this is not a ticket of motley launch --invite", cause,
          "copy the whole line, from motley1: to its end"};
}

// Removes and returns the text up to `end`; nothing if there is no `end`.
std::optional<std::string_view> take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const char* const last = text.data() + text.size();
  const auto [next, code] = std::from_chars(text.data(), last, value);
  const bool is_short = text.starts_with('0') || text.starts_with('-');
  if (code != std::errc{} || next != last || is_short) return std::nullopt;
  return value;
}

Result<std::vector<std::string>> parse_addresses(std::string_view text) {
  std::vector<std::string> addresses;
  std::string rest = std::string(text) + ',';
  std::string_view left = rest;
  while (const auto address = take_until(left, ',')) {
    addresses.emplace_back(*address);
    if (addresses.size() > kAddressesMax || !is_numeric_address(addresses.back())) {
      return bad_ticket("one of its addresses is not numeric");
    }
  }
  return addresses;
}

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

bool is_numeric_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (text.find('\0') != std::string::npos) return false;
  return ::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

std::string ticket_text(const Ticket& ticket) {
  return fmt::format("{}{}@{}/{}/{}/{}", kScheme, ticket.port, fmt::join(ticket.addresses, ","),
                     ticket.expires_unix_s, ticket.fingerprint, to_hex(ticket.secret));
}

Result<Ticket> parse_ticket(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  if (!text.starts_with(kScheme)) return bad_ticket("it does not begin with motley1:");
  if (text.size() > kTextBytesMax) return bad_ticket("it is too long");
  text.remove_prefix(kScheme.size());
  const auto port = take_until(text, '@');
  const auto addresses = take_until(text, '/');
  const auto expiry = take_until(text, '/');
  const auto fingerprint = take_until(text, '/');
  if (!port || !addresses || !expiry || !fingerprint) return bad_ticket("its end is missing");
  Ticket ticket;
  const auto port_number = whole_number<std::uint16_t>(*port);
  if (!port_number) return bad_ticket("its port is not a number from 1 to 65535");
  ticket.port = *port_number;
  MOTLEY_ASSIGN(ticket.addresses, parse_addresses(*addresses));
  const auto expiry_s = whole_number<std::int64_t>(*expiry);
  if (!expiry_s) return bad_ticket("its time is not a number of seconds");
  ticket.expires_unix_s = *expiry_s;
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'F'; };
  const auto key = from_hex(*fingerprint);
  if (!key || key->size() != kFingerprintBytes || std::ranges::any_of(*fingerprint, is_upper)) {
    return bad_ticket("its fingerprint is not 64 lower-case hexadecimal digits");
  }
  ticket.fingerprint = *fingerprint;
  const auto secret = from_hex(text);
  if (!secret || secret->size() != kTicketSecretBytes || std::ranges::any_of(text, is_upper)) {
    return bad_ticket("its last part, the secret, is not 32 lower-case hexadecimal digits");
  }
  ticket.secret.assign(secret->begin(), secret->end());
  return ticket;
}

}  // namespace motley

#include "figures/figure_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace motley {
namespace {

constexpr std::string_view kEllipsis = "…";

// The length in bytes of the UTF-8 character at `at` if XML allows it; else 0.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return first >= ' ' && first != 0x7F ? 1 : 0;
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + bytes > text.size()) return 0;
  std::uint32_t code = first & (0xFFU >> (bytes + 1));
  for (std::size_t i = at + 1; i < at + bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool is_none = code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF;
  return code < kLeast[bytes] || is_surrogate || is_none ? 0 : bytes;
}

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// The width in the widest common fonts, relative to the font size.
double character_width(char c) {
  constexpr std::string_view kNarrow = " ,.:;|!'`ijlI[]()/\\-tfr";
  constexpr std::string_view kWide = "mwMW@%";
  if (static_cast<unsigned char>(c) >= 0x80) return 1;
  if (kNarrow.find(c) != std::string_view::npos) return 0.42;
  if (kWide.find(c) != std::string_view::npos) return 1;
  return c >= 'A' && c <= 'Z' ? 0.77 : 0.64;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text, at);
    switch (text[at]) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += bytes > 0 ? text.substr(at, bytes) : "?";
    }
    at += bytes > 0 ? bytes : 1;
  }
  return result;
}

std::string shortened(std::string_view text, std::size_t characters) {
  std::size_t seen = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!starts_character(text[at]) || ++seen <= characters) continue;
    return std::string(text.substr(0, at)) + std::string(kEllipsis);
  }
  return std::string(text);
}

double text_width(std::string_view text, double font_px) {
  double width = 0;
  for (const char c : text) width += starts_character(c) ? character_width(c) : 0;
  return width * font_px;
}

std::string fitted(std::string_view text, double width, double font_px) {
  if (text_width(text, font_px) <= width) return std::string(text);
  double used = font_px;  // the ellipsis
  std::size_t characters = 0;
  for (const char c : text) {
    if (!starts_character(c)) continue;
    used += character_width(c) * font_px;
    if (used > width) break;
    ++characters;
  }
  return characters == 0 ? "" : shortened(text, characters);
}

std::string time_text(double seconds, double whole_s) {
  if (whole_s < 1e-3) return fmt::format("{:.4g} µs", seconds * 1e6);
  if (whole_s < 1) return fmt::format("{:.4g} ms", seconds * 1e3);
  return fmt::format("{:.4g} s", seconds);
}

double tick_of(double whole, double ticks) {
  const double power = std::pow(10, std::floor(std::log10(whole / ticks)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power * ticks >= whole) return step * power;
  }
  return 10 * power;
}

}  // namespace motley

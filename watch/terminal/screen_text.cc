#include "watch/terminal/screen_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json.h"

namespace motley {
namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// The length in bytes of a UTF-8 character with this first byte; 0 = invalid.
std::size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

// Whether the first two bytes are invalid: an overlong encoding, a surrogate, or a code point above
// U+10FFFF.
bool is_refused(unsigned char first, unsigned char second) {
  switch (first) {
    case 0xE0:
      return second < 0xA0;
    case 0xED:
      return second > 0x9F;
    case 0xF0:
      return second < 0x90;
    case 0xF4:
      return second > 0x8F;
    default:
      return false;
  }
}

bool is_character(std::string_view bytes) {
  const std::size_t length = length_of(static_cast<unsigned char>(bytes[0]));
  if (length == 0 || bytes.size() != length) return false;
  if (length > 1 &&
      is_refused(static_cast<unsigned char>(bytes[0]), static_cast<unsigned char>(bytes[1]))) {
    return false;
  }
  return std::ranges::all_of(bytes.substr(1), is_continuation);
}

// Control characters, including C1 (U+0080 to U+009F), which some terminals interpret.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string harmless(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_of(static_cast<unsigned char>(text[at]));
    const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
    if (!is_character(character)) {
      shown += '?';
      ++at;
      continue;
    }
    shown += is_control(character) ? "?" : character;
    at += length;
  }
  return shown;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

std::string clipped(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t taken = 0; at < text.size(); ++at) {
    if (!is_continuation(text[at]) && taken++ == columns) break;
  }
  return std::string(text.substr(0, at));
}

std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    std::string line = clipped(text, columns);
    if (line.size() < text.size() && text[line.size()] != ' ') {
      // A word longer than a line is split.
      if (const std::size_t space = line.rfind(' '); space != std::string::npos && space > 0) {
        line.resize(space);
      }
    }
    text.remove_prefix(line.size());
    if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> aligned_lines(const std::vector<std::vector<std::string>>& rows,
                                       std::size_t names) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], columns_of(row[c]));
    }
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string& line = lines.emplace_back();
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - columns_of(row[c]), ' ');
      line += (c == 0 ? "" : "  ") + (c < names ? row[c] + space : space + row[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

std::string sparkline(const std::vector<double>& values) {
  static constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double least = INFINITY;
  double greatest = -INFINITY;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  std::string line;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      line += ' ';
      continue;
    }
    // Halved, so that the difference cannot overflow.
    const double range = greatest / 2 - least / 2;
    const double share = range > 0 ? (value / 2 - least / 2) / range : 0;
    const auto bar = static_cast<std::size_t>(share * static_cast<double>(kBars.size()));
    line += kBars[std::min(bar, kBars.size() - 1)];
  }
  return line;
}

std::string progress_bar(double share, std::size_t columns) {
  constexpr std::size_t kFrame = 2;
  const double whole = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
  const std::string percent = fmt::format(" {:3.0f} %", whole * 100);
  if (columns < percent.size() + kFrame) return clipped(percent, columns);
  const std::size_t space = columns - percent.size() - kFrame;
  const auto done = static_cast<std::size_t>(std::lround(whole * static_cast<double>(space)));
  return "[" + std::string(done, '#') + std::string(space - done, '-') + "]" + percent;
}

double number_at(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number()) {
    return std::nan("");
  }
  return object[key].get<double>();
}

std::string text_at(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return "";
  return harmless(object[key].get_ref<const std::string&>());
}

std::string duration_text(double seconds) {
  constexpr double kLongest_s = 1e9;
  if (!(seconds >= 0 && seconds <= kLongest_s)) return "?";
  const std::int64_t whole = std::llround(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace motley

#include "plan/quantity_text.h"

#include <fmt/format.h>

#include <cmath>

namespace motley {

std::string bytes_text(double bytes) {
  constexpr double kKib = 1024;
  constexpr double kMib = kKib * 1024;
  constexpr double kGib = kMib * 1024;
  if (bytes >= kGib) return fmt::format("{:.2f} GiB", bytes / kGib);
  if (bytes >= kMib) return fmt::format("{:.1f} MiB", bytes / kMib);
  return fmt::format("{:.1f} KiB", bytes / kKib);
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.3f} s", seconds);
}

std::string link_rate_text(double bytes_per_s) {
  const double mbps = bytes_per_s * 8e-6;
  const double shown = mbps >= 1000 ? mbps / 1000 : mbps;
  const char* const unit = mbps >= 1000 ? "Gbit/s" : "Mbit/s";
  if (shown >= 100) return fmt::format("{:.0f} {}", shown, unit);
  return shown >= 10 ? fmt::format("{:.1f} {}", shown, unit)
                     : fmt::format("{:.2f} {}", shown, unit);
}

std::string per_second_text(double count) {
  if (count < 10) return fmt::format("{:.2f}", count);
  if (count < 100) return fmt::format("{:.1f}", count);
  std::string text = fmt::format("{:.0f}", count);
  constexpr std::size_t kGroup = 3;
  for (std::size_t at = text.size(); at > kGroup;) text.insert(at -= kGroup, 1, ',');
  return text;
}

std::string count_text(std::int64_t count) {
  const auto value = static_cast<double>(count);
  if (count >= 1'000'000) return fmt::format("{:.2f} M", value / 1e6);
  if (count >= 1'000) return fmt::format("{:.1f} k", value / 1e3);
  return fmt::format("{}", count);
}

std::string percent_text(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

std::string change_text(double base, double value) {
  return base > 0 ? fmt::format("{:+.1f} %", 100 * (value / base - 1)) : "";
}

double rounded_up(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::ceil(value / unit * (1 - 1e-12)) * unit;
}

}  // namespace motley

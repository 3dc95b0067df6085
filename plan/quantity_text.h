// Quantities as text for display; the only code that chooses units and digits.
#pragma once

#include <cstdint>
#include <string>

namespace motley {

// "1.50 GiB", "12.3 MiB", "0.4 KiB".
[[nodiscard]] std::string bytes_text(double bytes);
// "1.720 s" from one second on, "12.30 ms" below.
[[nodiscard]] std::string seconds_text(double seconds);
// "93.1 Mbit/s", "55.1 Gbit/s", from bytes per second.
[[nodiscard]] std::string link_rate_text(double bytes_per_s);
// "12,871", "37.2", "3.78": tokens or samples per second.
[[nodiscard]] std::string per_second_text(double count);
// "1.24 M", "3.5 k", "12".
[[nodiscard]] std::string count_text(std::int64_t count);
// "12 %", from a share from 0 to 1.
[[nodiscard]] std::string percent_text(double share);
// "+18.0 %": by how much `value` exceeds `base`; "" if base is not positive.
[[nodiscard]] std::string change_text(double base, double value);

// Rounded up to three digits, for suggestions. REQUIRES: value > 0.
[[nodiscard]] double rounded_up(double value);

}  // namespace motley

// LinkPace: how many bytes a second a connection carries, from looks at it now and then. While it
// always has something to send, that is what the link gives it; else it can only be more.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace motley {

class LinkPace {
 public:
  // sent_bytes: in all. is_blocked: more was to be sent, and nothing more was taken.
  void look(SteadyClock::time_point now, std::uint64_t sent_bytes, bool is_blocked) {
    const bool was_blocked = std::exchange(is_blocked_, is_blocked);
    const auto before = std::exchange(seen_at_, now);
    const std::uint64_t bytes = sent_bytes - std::exchange(sent_bytes_, sent_bytes);
    if (!before || now <= *before || bytes == 0) return;
    const double pace =
        static_cast<double>(bytes) / std::chrono::duration<double>(now - *before).count();
    const bool is_full = was_blocked && is_blocked;
    if (is_full || pace > bytes_per_s_.value_or(kFirst)) bytes_per_s_ = pace;
  }

  // Nothing before that is known.
  [[nodiscard]] std::optional<double> bytes_per_s() const { return bytes_per_s_; }

  // What passes in that time, within bounds. REQUIRES: bytes_per_s() is known.
  [[nodiscard]] std::size_t bytes_in(std::chrono::duration<double> time,
                                     std::size_t least,
                                     std::size_t most) const {
    const double bytes = *bytes_per_s_ * time.count();
    return bytes >= static_cast<double>(most) ? most
                                              : std::max(least, static_cast<std::size_t>(bytes));
  }

 private:
  static constexpr double kFirst = 12.5e6;  // 100 Mbit/s, for which the first pieces are

  std::optional<SteadyClock::time_point> seen_at_;
  std::uint64_t sent_bytes_ = 0;
  bool is_blocked_ = false;
  std::optional<double> bytes_per_s_;
};

}  // namespace motley

// BandwidthEstimate: estimates a connection's bandwidth in bytes/s from periodic samples. While the
// connection is always blocked, the measured rate is the bandwidth; otherwise it is a lower bound.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace motley {

class BandwidthEstimate {
 public:
  // sent_bytes: total so far. is_blocked: there was more to send, and the socket accepted no more.
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

  // nullopt before the first estimate.
  [[nodiscard]] std::optional<double> bytes_per_s() const { return bytes_per_s_; }

  // The bytes that the link carries in `time`, clamped to the bounds. REQUIRES: bytes_per_s() has a
  // value.
  [[nodiscard]] std::size_t bytes_in(std::chrono::duration<double> time,
                                     std::size_t least,
                                     std::size_t most) const {
    const double bytes = *bytes_per_s_ * time.count();
    return bytes >= static_cast<double>(most) ? most
                                              : std::max(least, static_cast<std::size_t>(bytes));
  }

 private:
  static constexpr double kFirst = 12.5e6;  // 100 Mbit/s, which kFirstPieceBytes assumes

  std::optional<SteadyClock::time_point> seen_at_;
  std::uint64_t sent_bytes_ = 0;
  bool is_blocked_ = false;
  std::optional<double> bytes_per_s_;
};

}  // namespace motley

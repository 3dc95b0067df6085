// The longest silence between the launcher and a worker that ends nothing.
#pragma once

namespace motley {

// patience_s: comm.patience_s. A little longer than that of the ranks with each other, whose
// reports are more precise. After an interruption, the channel of a worker behind ssh may be silent
// for as long again: ssh's connection resends after pauses that double, which only the system could
// shorten.
[[nodiscard]] constexpr double channel_patience_s(double patience_s, bool is_behind_ssh) {
  return (is_behind_ssh ? 2.25 : 1.25) * patience_s;
}

}  // namespace motley

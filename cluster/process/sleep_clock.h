// A clock that a machine which sleeps does not stop.
#pragma once

namespace motley {

// Seconds since an arbitrary start, those in which the machine slept included.
[[nodiscard]] double sleepless_s();

}  // namespace motley

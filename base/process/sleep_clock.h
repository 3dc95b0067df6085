// A clock that advances while the machine sleeps.
#pragma once

namespace motley {

// Seconds since an arbitrary start, including the time in which the machine slept.
[[nodiscard]] double sleepless_s();

}  // namespace motley

// Memory of this machine and this process, in bytes.
#pragma once

#include <cstdint>

namespace motley {

// What a new process could use without pushing others out; the limits of this process's
// control groups count. 0 when the system does not tell.
[[nodiscard]] std::int64_t available_memory_bytes();

// What this process holds in memory now, and the most it ever held. 0 when unknown.
[[nodiscard]] std::int64_t resident_bytes();
[[nodiscard]] std::int64_t peak_resident_bytes();

}  // namespace motley

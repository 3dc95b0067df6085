// Memory of this machine and this process, in bytes.
#pragma once

#include <cstdint>

namespace motley {

// The memory that a new process could use without swapping; includes the limits of this process's
// control groups. 0 if the system does not report it.
[[nodiscard]] std::int64_t available_memory_bytes();
// The same for the whole computer, without this process's limits.
[[nodiscard]] std::int64_t computer_memory_bytes();
// The computer's total memory. 0 if the system does not report it.
[[nodiscard]] std::int64_t installed_memory_bytes();

// The current and the maximum resident memory of this process. 0 if unknown.
[[nodiscard]] std::int64_t resident_bytes();
[[nodiscard]] std::int64_t peak_resident_bytes();

// Memory that this process may use temporarily while it can still return to its maximum resident
// size; a part of the available memory stays free for other processes. 0 if unknown.
[[nodiscard]] std::int64_t spare_memory_bytes();

// From now on the allocator retains freed memory for reuse, if it supports that: each step frees
// and allocates the same memory, and returning it to the system costs page faults.
void keep_freed_memory();

// Returns freed memory of this process to the system, if the allocator supports it.
void release_freed_memory();

}  // namespace motley

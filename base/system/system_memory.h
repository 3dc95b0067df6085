// Memory of this machine and this process, in bytes.
#pragma once

#include <cstdint>

namespace motley {

// What a new process could use without pushing others out; the limits of this process's
// control groups count. 0 when the system does not tell.
[[nodiscard]] std::int64_t available_memory_bytes();
// The same of the whole computer, whatever is granted to this process.
[[nodiscard]] std::int64_t computer_memory_bytes();
// What the computer has in all, in use or not. 0 when the system does not tell.
[[nodiscard]] std::int64_t installed_memory_bytes();

// What this process holds in memory now, and the most it ever held. 0 when unknown.
[[nodiscard]] std::int64_t resident_bytes();
[[nodiscard]] std::int64_t peak_resident_bytes();

// What this process may take for a while and still come back to the most that it ever held; a part
// of what the system has is left to others. 0 when unknown.
[[nodiscard]] std::int64_t spare_memory_bytes();

// From now on this process keeps memory that it frees for its next use, where the allocator can: a
// step frees and takes the same memory again and again, and each return to the system costs
// page faults.
void keep_freed_memory();

// Gives memory that this process has freed back to the system, where the allocator can.
void release_freed_memory();

}  // namespace motley

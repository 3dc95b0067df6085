// The allocator of the processor's tensors.
#pragma once

namespace motley {

// From now on the memory of a freed processor tensor is reused for the next tensor of its size.
// LibTorch allocates multiples of 64 bytes with posix_memalign, and in glibc such an allocation
// needs a larger hole than it leaves behind (sourceware.org, bugs 14581 and 30723). Memory freed by
// one micro-batch was therefore not reused by the next, and a worker grew by several of its largest
// tensors. Tensors of 16 MiB and more have blocks of their own (models/device/large_blocks.h).
// Existing tensors are not moved. For a process that computes; called before it starts other
// threads.
void reuse_tensor_memory();

// Returns the unused memory of freed tensors and other allocations to the system.
void release_tensor_memory();

}  // namespace motley

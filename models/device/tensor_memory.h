// Where the tensors of the processor lie.
#pragma once

namespace motley {

// From now on tensors of the processor lie in memory that serves the next tensor of their size once
// they are gone. LibTorch asks the C library for multiples of 64 bytes with posix_memalign, and in
// glibc such an allocation needs a larger hole than it leaves behind (sourceware.org, bugs 14581
// and 30723): what one micro-batch frees does not serve the next one, and a worker grew by several
// of its largest tensors. Those of 16 MiB and more lie in blocks of their own
// (models/device/large_blocks.h). Tensors that are there already stay where they are. For a process
// that computes, before its other threads.
void reuse_tensor_memory();

// Gives what freed tensors, and all else that was freed, left in this process back to the system.
void release_tensor_memory();

}  // namespace motley

// LibTorch's settings for devices: the same command gives the same bits, and fp32 products are
// computed in fp32.
#pragma once

namespace motley {

// Called once in a process, before anything is computed on a device other than the processor; it
// applies to all devices. From then on, operations for which LibTorch only has a nondeterministic
// order of summation throw an error that names them.
void compute_reproducibly();

}  // namespace motley

// What LibTorch is told before it computes on a device: the same command gives the same bits again,
// and fp32 is fp32.
#pragma once

namespace motley {

// Once in a process is enough, before anything is computed on a device other than the processor;
// it holds for all devices. An operation of which LibTorch has only an order of adding that changes
// from run to run is refused from then on, with its name.
void compute_reproducibly();

}  // namespace motley

// Kernels in fp16 that the processor's LibTorch lacks, by way of fp32: a device has them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace motley::far {

// Calls the processor's kernel. Where it is not there for fp16, the tensors of that type are
// widened, and what is made, or written to, is rounded.
void call_on_processor(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace motley::far

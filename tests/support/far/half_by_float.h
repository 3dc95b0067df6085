// fp16 kernels that the processor's LibTorch lacks, computed in fp32: a real device has them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace motley::far {

// Calls the processor's kernel. If it does not support fp16, fp16 tensors are widened to fp32, and
// new or written results are rounded.
void call_on_processor(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace motley::far

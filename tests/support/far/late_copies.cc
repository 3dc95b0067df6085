#include "tests/support/far/late_copies.h"

#include <cstring>
#include <limits>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include "tests/support/far/give_up.h"

namespace motley::far {
namespace {

void poison(const at::Tensor& tensor) {
  if (tensor.is_floating_point() || tensor.is_complex()) {
    tensor.fill_(std::numeric_limits<double>::quiet_NaN());
  } else if (tensor.scalar_type() == at::kBool) {
    tensor.fill_(true);
  } else {
    tensor.fill_(-1);
  }
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor contiguous = a.contiguous();
  return std::memcmp(contiguous.data_ptr(), b.data_ptr(), b.nbytes()) == 0;
}

}  // namespace

Range range_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return {};
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    last += (tensor.size(i) - 1) * tensor.stride(i);
  }
  const char* const begin = static_cast<const char*>(tensor.data_ptr());
  return {begin, begin + (last + 1) * static_cast<std::int64_t>(tensor.element_size())};
}

void LateCopies::add(LateCopy copy) {
  // Disables autograd and the rules for inference tensors: here are only bytes.
  const at::AutoDispatchBelowADInplaceOrView only_bytes;
  at::Tensor as_given = copy.source.clone(at::MemoryFormat::Contiguous);
  poison(copy.target);
  copies_.push_back({std::move(copy), std::move(as_given)});
}

void LateCopies::carry_out(const Submitted& submitted) {
  const at::AutoDispatchBelowADInplaceOrView only_bytes;
  const LateCopy& copy = submitted.copy;
  if (copy.to_device && !same_bytes(copy.source, submitted.as_given)) {
    give_up(
        "staging reused too early: the host changed what a copy to the device was yet to read, "
        "without waiting for it");
  }
  copy.target.copy_(submitted.as_given);
}

}  // namespace motley::far

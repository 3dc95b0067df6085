#include "models/device/compute_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <exception>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "models/device/device_copies.h"
#include "models/device/device_event.h"
#include "models/device/device_stall.h"
#include "models/device/kinds/device_queries.h"
#include "models/device/kinds/library_exception.h"

namespace motley {
namespace {

// Not every version of LibTorch has every setting.
template <class Context>
void settle(Context& context) {
  // Not warn_only: with it, fused attention uses an order of summation that changes between runs.
  context.setDeterministicAlgorithms(true, /*warn_only=*/false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);  // it would choose by timing
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setAllowFP16ReductionCuBLAS(false);
  if constexpr (requires { context.setAllowBF16ReductionCuBLAS(false); }) {
    context.setAllowBF16ReductionCuBLAS(false);
  }
  // Uninitialized memory is always written before it is read here; filling it costs time.
  if constexpr (requires { context.setDeterministicFillUninitializedMemory(false); }) {
    context.setDeterministicFillUninitializedMemory(false);
  }
}

// LibTorch's settings for devices: the same command gives the same bits, and fp32 products are
// computed in fp32. Called before anything is computed on a device other than the processor; it
// applies to all devices. From then on, operations for which LibTorch only has a nondeterministic
// order of summation throw an error that names them.
void compute_reproducibly() {
  // Otherwise cuBLAS may add in another order if several streams compute. LibTorch rejects other
  // values than the two that fix the order, so a user's own value is left unchanged.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  settle(at::globalContext());
}

// REQUIRES: check_device(name).
int index_of(const std::string& name) {
  const std::size_t colon = name.find(':');
  return colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1));
}

}  // namespace

Result<ComputeDevice> ComputeDevice::open(const std::string& name, double stall_timeout_s) {
  MOTLEY_TRY(check_device(name));
  const DeviceKind* const kind = find_device_kind(name);
  if (!kind->capabilities.computes) {
    return Error{ErrorCode::kInternal, fmt::format("'{}' is not a computing device", name), "", ""};
  }
  if (!is_accelerator(kind->capabilities)) return ComputeDevice();
  compute_reproducibly();
  const DeviceCount found = count_devices(*kind);
  if (found.count == 0) {
    return Error{ErrorCode::kConfig, fmt::format("no device '{}' on this machine", name),
                 found.unavailable.cause, found.unavailable.remedy};
  }
  const int index = index_of(name);
  if (index >= found.count) {
    return Error{ErrorCode::kConfig, fmt::format("no device '{}' on this machine", name),
                 fmt::format("this machine has {}", fmt::join(local_devices(), ", ")),
                 "use one of these, in the cluster file or with --device"};
  }
  ComputeDevice device(*kind,
                       c10::Device(*torch_type_of(*kind), static_cast<c10::DeviceIndex>(index)),
                       stall_timeout_s);
  device.make_current();
  MOTLEY_TRY(device.try_out());
  return device;
}

// A visible device may still be unusable: LibTorch may lack kernels for it, or another program may
// have allocated all of its memory.
Result<void> ComputeDevice::try_out() const {
  try {
    DeviceCopies(*this).download(at::ones({1}, at::device(device_)).add_(1)).wait();
    return {};
  } catch (const DeviceStall& stood) {
    return stood.error("its first operation");
  } catch (const std::exception& thrown) {
    const std::string said = first_line_of(thrown);
    if (is_out_of_memory(thrown)) {
      return Error{ErrorCode::kInfeasible, fmt::format("{} is out of memory", name()), said,
                   "end other programs on it, or use another device"};
    }
    const DeviceQueries& queries = queries_of(kind_->library);
    const auto known = queries.problem == nullptr ? std::nullopt : queries.problem(device_.index());
    return Error{ErrorCode::kConfig, fmt::format("{} cannot compute", name()),
                 known ? fmt::format("{} ({})", known->cause, said) : said,
                 known ? known->remedy
                       : "check that other programs can use it; 'motley devices' shows its state"};
  }
}

void ComputeDevice::make_current() const {
  if (!is_host()) c10::impl::VirtualGuardImpl(device_.type()).setDevice(device_);
}

void ComputeDevice::finish() const {
  if (is_host()) return;
  const c10::impl::VirtualGuardImpl guard(device_.type());
  DeviceEvent(guard.getStream(device_)).wait(stall_timeout_s_);
}

std::optional<DeviceMemoryInfo> ComputeDevice::memory() const {
  const DeviceQueries& queries = queries_of(kind_->library);
  if (queries.memory == nullptr) return std::nullopt;
  make_current();
  return queries.memory();
}

at::ScalarType exact_type(c10::Device device) {
  const DeviceKind* const kind = find_device_kind(device.type());
  return kind == nullptr || kind->has_fp64 ? at::kDouble : at::kFloat;
}

bool shares_host_memory(c10::Device device) {
  const DeviceKind* const kind = find_device_kind(device.type());
  return kind != nullptr && (!kind->capabilities.has_own_memory || kind->has_unified_memory);
}

std::string device_model(const std::string& name) {
  const DeviceKind* const kind = find_device_kind(name);
  if (kind == nullptr) return "";
  const DeviceQueries& queries = queries_of(kind->library);
  return queries.model == nullptr ? "" : queries.model(index_of(name));
}

std::vector<std::string> local_devices() {
  std::vector<std::string> names = {ComputeDevice().name()};
  for (const DeviceKind& kind : device_kinds()) {
    if (!is_accelerator(kind.capabilities)) continue;
    const int count = count_devices(kind).count;
    for (int index = 0; index < count; ++index) {
      names.push_back(device_name(kind, index));
    }
  }
  return names;
}

}  // namespace motley

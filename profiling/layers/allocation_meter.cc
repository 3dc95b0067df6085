#include "profiling/layers/allocation_meter.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "models/device/torch_compat.h"

namespace motley {
namespace {

// The bytes held on a device, as its allocator reports them.
class Reported {
 public:
  void add(std::int64_t bytes) {
    has_reports_ = true;
    held_bytes_ += bytes;  // negative when memory is freed
    peak_bytes_ = std::max(peak_bytes_, held_bytes_);
  }

  [[nodiscard]] bool has_reports() const { return has_reports_; }

  [[nodiscard]] std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  bool has_reports_ = false;
  std::int64_t held_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

// The same, derived from the tensors that operations take and return.
class Shown {
 public:
  explicit Shown(c10::Device device) : device_(device) {}

  void begin(const at::RecordFunction& operation) {
    for (const c10::IValue& value : operation.inputs()) see_all(value, /*is_made=*/false);
  }

  void end(const at::RecordFunction& operation) {
    for (const c10::IValue& value : operation.outputs()) see_all(value, /*is_made=*/true);
    std::int64_t held_bytes = 0;
    for (auto seen = seen_.begin(); seen != seen_.end();) {
      const auto storage = seen->second.storage.lock();
      if (storage && seen->second.is_made)
        held_bytes += static_cast<std::int64_t>(storage->nbytes());
      seen = storage ? std::next(seen) : seen_.erase(seen);
    }
    peak_bytes_ = std::max(peak_bytes_, held_bytes);
  }

  [[nodiscard]] std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  struct Seen {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    bool is_made = false;  // first seen as an operation's output, so created since the meter began
  };

  void see_all(const c10::IValue& value, bool is_made) {
    if (value.isTensor()) return see(value.toTensor(), is_made);
    if (!value.isTensorList()) return;
    for (const at::Tensor& tensor : value.toTensorVector()) see(tensor, is_made);
  }

  void see(const at::Tensor& tensor, bool is_made) {
    if (!tensor.defined() || tensor.device() != device_ || !tensor.has_storage()) return;
    c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
    // The weak reference keeps the address from being reused.
    seen_.try_emplace(storage, Seen{tensor.storage().getWeakStorageImpl(), is_made});
  }

  const c10::Device device_;
  std::unordered_map<const c10::StorageImpl*, Seen> seen_;
  std::int64_t peak_bytes_ = 0;
};

// The object that LibTorch finds for this thread when it reports allocations.
struct Counts final : c10::MemoryReportingInfoBase {
  explicit Counts(c10::Device counted) : device(counted), shown(counted) {}

  void reportMemoryUsage(void* /*ptr*/,
                         std::int64_t alloc_size,
                         torch_compat::ReportedTotal /*total_allocated*/,
                         torch_compat::ReportedTotal /*total_reserved*/,
                         c10::Device of) override {
    if (of == device) reported.add(alloc_size);
  }

  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }

  const c10::Device device;
  Reported reported;
  Shown shown;
};

// An enumerator in older versions of LibTorch, an object of its library in newer ones; the
// reference binds to either.
constexpr const auto& kKind = c10::DebugInfoKind::PROFILER_STATE;

// REQUIRES: this thread has an active meter.
Shown& shown_here() {
  return static_cast<Counts*>(c10::ThreadLocalDebugInfo::get(kKind))->shown;
}

at::CallbackHandle look_at_operations() {
  return at::addThreadLocalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction& operation) -> std::unique_ptr<at::ObserverContext> {
            shown_here().begin(operation);
            return nullptr;
          },
          [](const at::RecordFunction& operation, at::ObserverContext* /*context*/) {
            shown_here().end(operation);
          })
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION}));
}

}  // namespace

struct AllocationMeter::Impl {
  explicit Impl(c10::Device device) : counts(std::make_shared<Counts>(device)) {
    (void)at::empty({1}, at::device(device));
    if (!counts->reported.has_reports()) looks = look_at_operations();
  }

  ~Impl() {
    if (looks != at::INVALID_CALLBACK_HANDLE) at::removeCallback(looks);
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::shared_ptr<Counts> counts;
  const c10::DebugInfoGuard guard{kKind, counts};
  at::CallbackHandle looks = at::INVALID_CALLBACK_HANDLE;
};

AllocationMeter::AllocationMeter(c10::Device device) : impl_(std::make_unique<Impl>(device)) {}

AllocationMeter::~AllocationMeter() = default;

std::int64_t AllocationMeter::peak_bytes() const {
  const Counts& counts = *impl_->counts;
  return counts.reported.has_reports() ? counts.reported.peak_bytes() : counts.shown.peak_bytes();
}

}  // namespace motley

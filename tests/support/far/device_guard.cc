// c10's interface to a kind of device: the current device of a thread, its streams and their
// events.
#include <algorithm>
#include <atomic>
#include <utility>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "tests/support/far/far_state.h"
#include "tests/support/far/here.h"
#include "tests/support/far/torch_versions.h"

namespace motley::far {
namespace {

// How many queries report an unfinished event although it is finished: pollers must retry.
constexpr int kDenials = 2;

struct Event {
  Mark mark;
  bool is_timed = false;
  int denials_left = kDenials;
};

const Event& event_at(void* event) {
  return *static_cast<Event*>(event);
}

// Never returns the default stream.
int next_of_pool() {
  thread_local int last = 0;
  last = last % (kStreamsPerDevice - 1) + 1;
  return last;
}

class DeviceGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }

  c10::Device getDevice() const override { return torch_device(current_device()); }

  void setDevice(c10::Device device) const override { use_device(device_index(device)); }

  void uncheckedSetDevice(c10::Device device) const noexcept override {
    use_device(device_index(device));
  }

  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(FarState::get().devices());
  }

  c10::Stream getStream(c10::Device device) const noexcept override {
    return torch_stream(current_stream(device_index(device)));
  }

  c10::Stream getDefaultStream(c10::Device device) const override {
    return torch_stream(stream_number(device_index(device), 0));
  }

  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high_priority*/) const override {
    return torch_stream(stream_number(device_index(device), next_of_pool()));
  }

  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    const c10::Stream before = getStream(stream.device());
    use_stream(stream_number_of(stream));
    return before;
  }

  void record(void** event,
              const c10::Stream& stream,
              c10::DeviceIndex /*device*/,
              c10::EventFlag flag) const override {
    Mark mark = FarState::get().mark(stream_number_of(stream));
    // As on CUDA, where timed events cost more.
    const bool is_timed = flag == c10::EventFlag::BACKEND_DEFAULT;
    if (*event == nullptr) {
      *event = new Event{std::move(mark), is_timed};
    } else {
      *static_cast<Event*>(*event) = Event{std::move(mark), is_timed};
    }
  }

  void destroyEvent(void* event, c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<Event*>(event);
  }

  void block(void* event, const c10::Stream& stream) const override {
    FarState::get().block_stream(stream_number_of(stream), event_at(event).mark);
  }

  bool queryEvent(void* event) const override {
    Event& asked = *static_cast<Event*>(event);
    return is_done(asked.mark, asked.denials_left);
  }

  bool queryStream(const c10::Stream& stream) const override {
    thread_local int denials_left = kDenials;
    const bool done = is_done(FarState::get().mark(stream_number_of(stream)), denials_left);
    if (done) denials_left = kDenials;
    return done;
  }

  void synchronizeStream(const c10::Stream& stream) const override {
    FarState::get().wait_for(stream_number_of(stream));
  }

#if MOTLEY_FAR_EVENTS_ARE_WAITED_FOR
  void synchronizeEvent(void* event) const override {
    FarState::get().wait_for(event_at(event).mark);
  }
#endif

#if MOTLEY_FAR_EVENTS_HAVE_TIMES
  double elapsedTime(void* earlier, void* later, const c10::DeviceIndex /*device*/) const override {
    constexpr double kMillisecondsPerSecond = 1e3;
    for (void* const event : {earlier, later}) {
      TORCH_CHECK(event != nullptr && event_at(event).is_timed, "the event has no time");
      TORCH_CHECK(FarState::get().is_seen(event_at(event).mark), "the event is not done");
    }
    return kMillisecondsPerSecond *
           (event_at(later).mark.reached_s - event_at(earlier).mark.reached_s);
  }
#endif

#if MOTLEY_FAR_DEVICES_ARE_WAITED_FOR
  void synchronizeDevice(c10::DeviceIndex device) const override {
    FarState& state = FarState::get();
    Mark all = state.mark(stream_number(device, 0));
    for (int stream = 1; stream < kStreamsPerDevice; ++stream) {
      const Mark mark = state.mark(stream_number(device, stream));
      all.clock.join(mark.clock);
      all.reached_s = std::max(all.reached_s, mark.reached_s);
    }
    state.wait_for(all);
  }
#endif

  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    FarState::get().record_use(memory.get(), stream_number_of(stream));
  }

 private:
  static bool is_done(const Mark& mark, int& denials_left) {
    FarState& state = FarState::get();
    state.count_question();
    if (state.is_seen(mark)) return true;
    // Several threads may query at once.
    if (std::atomic_ref(denials_left).fetch_sub(1) > 0) return false;
    return state.look(mark);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, DeviceGuard)

}  // namespace
}  // namespace motley::far

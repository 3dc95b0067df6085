#include "tests/support/far/far_state.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/support/far/give_up.h"

namespace motley::far {
namespace {

constexpr const char* kUpload = "the copy to the device";
constexpr const char* kDownload = "the copy to the host";

std::size_t number_from_environment(const char* name,
                                    std::size_t otherwise,
                                    std::size_t min,
                                    std::size_t max) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0' || number < min || number > max) {
    give_up(std::string(name) + " must be a number from " + std::to_string(min) + " to " +
            std::to_string(max));
  }
  return static_cast<std::size_t>(number);
}

constexpr std::chrono::microseconds kLook(50);  // polling interval for the progress of streams
constexpr std::size_t kNumberMax = std::size_t{1} << 40;

double operation_s_from_environment() {
  return 1e-6 *
         static_cast<double>(number_from_environment("MOTLEY_FAR_OPERATION_US", 0, 0, kNumberMax));
}

int devices_from_environment() {
  return static_cast<int>(number_from_environment("MOTLEY_FAR_DEVICES", 2, 1, 16));
}

const char* verb_of(bool writes) {
  return writes ? " writes" : " reads";
}

}  // namespace

std::string stream_name(StreamNumber stream) {
  return "stream " + std::to_string(stream % kStreamsPerDevice) +
         " of privateuseone:" + std::to_string(stream / kStreamsPerDevice);
}

FarState& FarState::get() {
  static FarState* const state = new FarState();
  return *state;
}

FarState::FarState()
    : order_(devices_from_environment() * kStreamsPerDevice),
      times_(devices_from_environment() * kStreamsPerDevice, operation_s_from_environment()),
      hangs_after_(number_from_environment("MOTLEY_FAR_HANGS_AFTER", 0, 0, kNumberMax)) {
  const std::size_t bytes = number_from_environment("MOTLEY_FAR_MIB", 4096, 1, 1 << 20) << 20U;
  for (int device = 0; device < devices_from_environment(); ++device) {
    memories_.push_back(std::make_unique<MappedMemory>(bytes));
  }
}

void* FarState::allocate(int device, std::size_t bytes, StreamNumber stream) {
  const std::lock_guard lock(mutex_);
  char* const shown = memories_[static_cast<std::size_t>(device)]->allocate(bytes);
  if (shown != nullptr) blocks_[shown] = {device, bytes, stream, {}, {}};
  return shown;
}

std::size_t FarState::release(void* shown) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<const char*>(shown));
  if (found == blocks_.end()) give_up("memory is freed that was not allocated");
  Block& block = found->second;
  // The block's stream may reuse it at once, so freeing counts as a write by that stream.
  VectorClock known = order_.known_to(block.stream);
  for (const StreamNumber stream : block.recorded) known.join(order_.known_to(stream));
  const Access freed = {0, block.bytes, {block.stream, 0}, true, "freeing"};
  if (const Access* use = block.accesses.conflict(freed, known)) {
    give_up("memory of " + stream_name(block.stream) + " is freed while " + use->operation +
            " on " + stream_name(use->when.stream) +
            " may be using it: record that stream, or wait for it first");
  }
  const char* const begin = found->first;
  const Range range = {begin, begin + block.bytes};
  late_.carry_out_where([&](const LateCopy& copy) { return copy.device.meets(range); });
  memories_[static_cast<std::size_t>(block.device)]->release(static_cast<char*>(shown),
                                                             block.bytes);
  const std::size_t bytes = block.bytes;
  blocks_.erase(found);
  return bytes;
}

MappedMemory& FarState::memory_of(const void* shown) {
  const auto found = std::find_if(memories_.begin(), memories_.end(),
                                  [&](const auto& memory) { return memory->holds(shown); });
  if (found == memories_.end()) give_up("an address is no memory of any device");
  return **found;
}

char* FarState::hidden(const void* shown) {
  const std::lock_guard lock(mutex_);
  return memory_of(shown).hidden(shown);
}

int FarState::device_of(const void* shown) {
  const std::lock_guard lock(mutex_);
  return block_of(static_cast<const char*>(shown))->second.device;
}

FarState::Blocks::iterator FarState::block_of(const char* shown) {
  auto after = blocks_.upper_bound(shown);
  if (after != blocks_.begin()) {
    const auto found = std::prev(after);
    if (shown < found->first + found->second.bytes) return found;
  }
  give_up("freed memory is used");
}

void FarState::record_use(const void* shown, StreamNumber stream) {
  if (shown == nullptr) return;
  const std::lock_guard lock(mutex_);
  block_of(static_cast<const char*>(shown))->second.recorded.insert(stream);
}

std::size_t FarState::bytes_in_use(int device) {
  const std::lock_guard lock(mutex_);
  return memories_.at(static_cast<std::size_t>(device))->in_use();
}

std::size_t FarState::bytes_peak(int device) {
  const std::lock_guard lock(mutex_);
  return memories_.at(static_cast<std::size_t>(device))->peak();
}

std::size_t FarState::bytes_limit(int device) {
  const std::lock_guard lock(mutex_);
  return memories_.at(static_cast<std::size_t>(device))->limit();
}

void FarState::limit_memory(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (const auto& memory : memories_) memory->set_limit(bytes);
}

void FarState::begin(StreamNumber stream,
                     const char* operation,
                     const std::vector<Touch>& touches) {
  wait_for_space();
  const std::lock_guard lock(mutex_);
  const Moment when = order_.give(stream);
  for (const Touch& used : touches) touch(when, operation, used);
  count_operation(stream);
}

void FarState::count_operation(StreamNumber stream) {
  times_.give(stream);
  ++counters_.operations;
  if (hangs_after_ > 0 && --hangs_after_ == 0) hangs_ = true;
  if (hangs_) ++queued_;
}

void FarState::wait_for_space() {
  constexpr int kQueue = 1000;  // about as many as on CUDA
  const auto is_full = [&] {
    const std::lock_guard lock(mutex_);
    return hangs_ && queued_ >= kQueue;
  };
  while (is_full()) std::this_thread::sleep_for(kLook);
}

void FarState::made(StreamNumber stream, const char* operation, const Range& range) {
  const std::lock_guard lock(mutex_);
  touch(order_.give(stream), operation, {range, true});
}

void FarState::touch(const Moment& when, const char* operation, const Touch& touch) {
  if (touch.range.begin == touch.range.end) return;
  const auto block = block_of(touch.range.begin);
  const auto offset = [&](const char* at) { return static_cast<std::size_t>(at - block->first); };
  const Access access = {offset(touch.range.begin), offset(touch.range.end), when, touch.writes,
                         operation};
  Accesses& accesses = block->second.accesses;
  if (const Access* earlier = accesses.conflict(access, order_.known_to(when.stream))) {
    give_up(std::string("race: ") + operation + " on " + stream_name(when.stream) +
            verb_of(touch.writes) + " what " + earlier->operation + " on " +
            stream_name(earlier->when.stream) + verb_of(earlier->writes) +
            ", without waiting for an event after it");
  }
  late_.carry_out_where([&](const LateCopy& copy) { return copy.device.meets(touch.range); });
  accesses.add(access, order_.known_to_host());
}

// Before a copy accesses the host's memory: earlier copies that use it are executed, or are an
// error.
void FarState::meet_host(StreamNumber stream,
                         const char* operation,
                         const Range& host,
                         bool writes) {
  const VectorClock known = order_.known_to(stream);
  const auto meets = [&](const LateCopy& copy) {
    // Two reads do not conflict.
    return copy.host.meets(host) && (writes || !copy.to_device);
  };
  late_.carry_out_where(
      [&](const LateCopy& copy) { return meets(copy) && known.covers(copy.when); });
  if (const LateCopy* other = late_.find(meets)) {
    give_up(std::string("race: ") + operation + " on " + stream_name(stream) + verb_of(writes) +
            " memory of the host that " + (other->to_device ? kUpload : kDownload) + " on " +
            stream_name(other->when.stream) + verb_of(!other->to_device) +
            ", without waiting for an event after it");
  }
}

void FarState::count_copy(bool to_device, const Range& host) {
  const auto bytes = static_cast<std::uint64_t>(host.end - host.begin);
  ++(to_device ? counters_.copies_to_device : counters_.copies_from_device);
  (to_device ? counters_.bytes_to_device : counters_.bytes_from_device) += bytes;
}

void FarState::give(StreamNumber stream, LateCopy copy, const Touch& device) {
  const std::lock_guard lock(mutex_);
  const char* const operation = copy.to_device ? kUpload : kDownload;
  copy.when = order_.give(stream);
  meet_host(stream, operation, copy.host, !copy.to_device);
  touch(copy.when, operation, device);
  count_copy(copy.to_device, copy.host);
  times_.give(stream);
  if (copy.to_device) copy.device = device.range;
  late_.add(std::move(copy));
}

void FarState::begin_copy(StreamNumber stream,
                          bool to_device,
                          const Range& host,
                          const Touch& device) {
  sleep_until_done(mark(stream));
  const std::lock_guard lock(mutex_);
  const char* const operation = to_device ? kUpload : kDownload;
  const Moment when = order_.give(stream);
  meet_host(stream, operation, host, !to_device);
  touch(when, operation, device);
  count_copy(to_device, host);
  ++counters_.host_waits;
  see_locked(order_.known_to(stream));
}

Mark FarState::mark(StreamNumber stream) {
  const std::lock_guard lock(mutex_);
  return {order_.known_to(stream), times_.reached_s(stream)};
}

void FarState::block_stream(StreamNumber stream, const Mark& mark) {
  const std::lock_guard lock(mutex_);
  order_.block_stream(stream, mark.clock);
  times_.block_stream(stream, mark.reached_s);
}

bool FarState::is_done(const Mark& mark) const {
  return !hangs_ && now_s() >= mark.reached_s;
}

void FarState::sleep_until_done(const Mark& mark) {
  while (!is_done(mark)) std::this_thread::sleep_for(kLook);
}

void FarState::wait_for(const Mark& mark) {
  sleep_until_done(mark);
  const std::lock_guard lock(mutex_);
  ++counters_.host_waits;
  see_locked(mark.clock);
}

void FarState::see_locked(const VectorClock& mark) {
  order_.host_waited_for(mark);
  late_.carry_out_where([&](const LateCopy& copy) { return mark.covers(copy.when); });
}

bool FarState::is_seen(const Mark& mark) {
  const std::lock_guard lock(mutex_);
  return order_.known_to_host().covers(mark.clock) && now_s() >= mark.reached_s;
}

bool FarState::look(const Mark& mark) {
  if (!is_done(mark)) return false;
  const std::lock_guard lock(mutex_);
  see_locked(mark.clock);
  return true;
}

void FarState::set_operation_s(double operation_s) {
  const std::lock_guard lock(mutex_);
  times_.set_operation_s(operation_s);
}

void FarState::hang(bool hangs) {
  const std::lock_guard lock(mutex_);
  hangs_ = hangs;
  queued_ = 0;
}

void FarState::count_question() {
  const std::lock_guard lock(mutex_);
  ++counters_.questions;
}

MotleyFarCounters FarState::counters() {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void FarState::reset_counters() {
  const std::lock_guard lock(mutex_);
  counters_ = {};
  for (const auto& memory : memories_) memory->forget_peak();
}

}  // namespace motley::far

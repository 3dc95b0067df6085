// FarState: all that the far device knows: its memory, what its streams were given, what is late.
//
// One for the process, made when it is first asked for and never destroyed, since tensors may be
// freed while the process ends. Threads: any; each function takes the lock. An operation is
// announced before it computes, and computes without the lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/far/accesses.h"
#include "tests/support/far/far_device.h"
#include "tests/support/far/late_copies.h"
#include "tests/support/far/mapped_memory.h"
#include "tests/support/far/stream_order.h"
#include "tests/support/far/stream_times.h"

namespace motley::far {

inline constexpr int kStreamsPerDevice = 5;  // the default one and the pool

inline StreamNumber stream_number(int device, int stream) {
  return device * kStreamsPerDevice + stream;
}

// Device memory, at its shown address, that an operation uses.
struct Touch {
  Range range;
  bool writes = false;
};

// A point in the work of a stream.
struct Mark {
  VectorClock clock;
  double reached_s = 0;  // now_s() when all before it is done
};

class FarState {
 public:
  [[nodiscard]] static FarState& get();

  [[nodiscard]] int devices() const { return static_cast<int>(memories_.size()); }

  // Memory for a stream. nullptr where the device has no room left.
  [[nodiscard]] void* allocate(int device, std::size_t bytes, StreamNumber stream);
  // Ends the process where a stream that was not recorded may be using it. Returns its bytes.
  std::size_t release(void* shown);
  [[nodiscard]] char* hidden(const void* shown);
  [[nodiscard]] int device_of(const void* shown);
  // Memory that is freed may be in use by this stream.
  void record_use(const void* shown, StreamNumber stream);

  [[nodiscard]] std::size_t bytes_in_use(int device);
  [[nodiscard]] std::size_t bytes_peak(int device);
  [[nodiscard]] std::size_t bytes_limit(int device);
  void limit_memory(std::size_t bytes);

  // The stream is given an operation, which now computes. Ends the process where another stream's
  // access to the same memory has no order with it; makes true what it comes after.
  void begin(StreamNumber stream, const char* operation, const std::vector<Touch>& touches);
  // The same of memory that the operation made itself.
  void made(StreamNumber stream, const char* operation, const Range& range);

  // A copy that is carried out later. When it is given and, of one to a device, its range there are
  // set here.
  void give(StreamNumber stream, LateCopy copy, const Touch& device);
  // A copy that blocks, which the caller carries out when this returns.
  void begin_copy(StreamNumber stream, bool to_device, const Range& host, const Touch& device);

  [[nodiscard]] Mark mark(StreamNumber stream);
  void hold_back(StreamNumber stream, const Mark& mark);
  // The host waits; it is counted.
  void wait_for(const Mark& mark);

  void wait_for(StreamNumber stream) { wait_for(mark(stream)); }

  // Whether the host has seen that all before the mark is done.
  [[nodiscard]] bool is_seen(const Mark& mark);
  // The host looks again: the same.
  [[nodiscard]] bool look(const Mark& mark);

  void set_operation_s(double operation_s);
  // From now on no stream gets on, or all do again.
  void hang(bool hangs);

  void count_question();
  [[nodiscard]] MotleyFarCounters counters();
  void reset_counters();

 private:
  struct Block {
    int device = 0;
    std::size_t bytes = 0;
    StreamNumber stream = 0;  // that it was allocated for
    std::set<StreamNumber> recorded;
    Accesses accesses;
  };

  using Blocks = std::map<const char*, Block>;  // [shown address]

  FarState();

  [[nodiscard]] MappedMemory& memory_of(const void* shown);
  [[nodiscard]] Blocks::iterator block_of(const char* shown);
  void touch(const Moment& when, const char* operation, const Touch& touch);
  void meet_host(StreamNumber stream, const char* operation, const Range& host, bool writes);
  void count_copy(bool to_device, const Range& host);
  void see_locked(const VectorClock& mark);
  // Sleeps, without the lock, until it is so.
  void sleep_until_done(const Mark& mark);
  [[nodiscard]] bool is_done(const Mark& mark) const;
  void count_operation(StreamNumber stream);
  // Of a device that hangs the queue is full at some time; then the host stands still too.
  void wait_for_room();

  std::mutex mutex_;
  std::vector<std::unique_ptr<MappedMemory>> memories_;  // [device]
  Blocks blocks_;
  StreamOrder order_;
  StreamTimes times_;
  std::uint64_t hangs_after_;  // operations; 0 = never
  std::atomic<bool> hangs_ = false;
  int queued_ = 0;  // operations, since it hangs
  LateCopies late_;
  MotleyFarCounters counters_{};
};

// "stream 1 of privateuseone:0"
[[nodiscard]] std::string stream_name(StreamNumber stream);

}  // namespace motley::far

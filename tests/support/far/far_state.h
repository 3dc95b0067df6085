// FarState: the state of the far device: its memory, the order of its streams' work, pending
// copies.
//
// A singleton of the process, created on first use and never destroyed, since tensors may be freed
// while the process exits. Thread-safe; each function takes the lock. An operation is announced
// before it computes, and computes without the lock.
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

inline constexpr int kStreamsPerDevice = 5;  // the default stream and the pool

inline StreamNumber stream_number(int device, int stream) {
  return device * kStreamsPerDevice + stream;
}

// Device memory that an operation accesses, at its shown address.
struct Touch {
  Range range;
  bool writes = false;
};

// A point in the work of a stream.
struct Mark {
  VectorClock clock;
  double reached_s = 0;  // now_s() at which all work before it is done
};

class FarState {
 public:
  [[nodiscard]] static FarState& get();

  [[nodiscard]] int devices() const { return static_cast<int>(memories_.size()); }

  // Allocates memory for a stream. nullptr if the device is full.
  [[nodiscard]] void* allocate(int device, std::size_t bytes, StreamNumber stream);
  // Ends the process if a stream that was not recorded may be using the memory. Returns its size
  // in bytes.
  std::size_t release(void* shown);
  [[nodiscard]] char* hidden(const void* shown);
  [[nodiscard]] int device_of(const void* shown);
  // Records that this stream may still use the memory when it is freed.
  void record_use(const void* shown, StreamNumber stream);

  [[nodiscard]] std::size_t bytes_in_use(int device);
  [[nodiscard]] std::size_t bytes_peak(int device);
  [[nodiscard]] std::size_t bytes_limit(int device);
  void limit_memory(std::size_t bytes);

  // Submits an operation to the stream, which the caller then computes. Executes the pending
  // copies that it depends on. Ends the process if another stream's access to the same memory is
  // unordered with it.
  void begin(StreamNumber stream, const char* operation, const std::vector<Touch>& touches);
  // The same for memory that the operation allocated itself.
  void made(StreamNumber stream, const char* operation, const Range& range);

  // Submits a copy that is executed later. Sets its `when` and, for a copy to a device, its device
  // range.
  void give(StreamNumber stream, LateCopy copy, const Touch& device);
  // Submits a blocking copy, which the caller executes after this returns.
  void begin_copy(StreamNumber stream, bool to_device, const Range& host, const Touch& device);

  [[nodiscard]] Mark mark(StreamNumber stream);
  void block_stream(StreamNumber stream, const Mark& mark);
  // Waits on the host, and counts the wait.
  void wait_for(const Mark& mark);

  void wait_for(StreamNumber stream) { wait_for(mark(stream)); }

  // Whether the host has already observed that all work before the mark is done.
  [[nodiscard]] bool is_seen(const Mark& mark);
  // Checks anew whether all work before the mark is done.
  [[nodiscard]] bool look(const Mark& mark);

  void set_operation_s(double operation_s);
  // Stops all streams, or lets them continue.
  void hang(bool hangs);

  void count_question();
  [[nodiscard]] MotleyFarCounters counters();
  void reset_counters();

 private:
  struct Block {
    int device = 0;
    std::size_t bytes = 0;
    StreamNumber stream = 0;  // the stream that it was allocated for
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
  // Sleeps, without the lock, until the mark is reached.
  void sleep_until_done(const Mark& mark);
  [[nodiscard]] bool is_done(const Mark& mark) const;
  void count_operation(StreamNumber stream);
  // Blocks while the queue of a hanging device is full.
  void wait_for_space();

  std::mutex mutex_;
  std::vector<std::unique_ptr<MappedMemory>> memories_;  // [device]
  Blocks blocks_;
  StreamOrder order_;
  StreamTimes times_;
  std::uint64_t hangs_after_;  // operations; 0 = never
  std::atomic<bool> hangs_ = false;
  int queued_ = 0;  // operations since the device hangs
  LateCopies late_;
  MotleyFarCounters counters_{};
};

// "stream 1 of privateuseone:0"
[[nodiscard]] std::string stream_name(StreamNumber stream);

}  // namespace motley::far

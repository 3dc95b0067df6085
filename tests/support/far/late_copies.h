// LateCopies: copies between the host and devices that were submitted to a stream and are not
// executed yet.
//
// Each copy is executed as late as a device may do it: when its result may be relied upon. That is
// when the host has waited for it, or when a later operation of the order accesses the same bytes.
// Streams cannot change the source of a copy to the host before its execution (Accesses). The host
// can change the source of a copy to a device, so it is compared with its value at submission.
//
// Threads: the caller holds a lock.
#pragma once

#include <cstddef>
#include <list>

#include <ATen/core/Tensor.h>

#include "tests/support/far/vector_clock.h"

namespace motley::far {

struct Range {
  const char* begin = nullptr;
  const char* end = nullptr;

  [[nodiscard]] bool meets(const Range& other) const {
    return begin < other.end && other.begin < end;
  }
};

// The bytes from a tensor's first element to its last.
[[nodiscard]] Range range_of(const at::Tensor& tensor);

struct LateCopy {
  Moment when;
  bool to_device = false;
  at::Tensor source;  // on the host, or the hidden memory of the device
  at::Tensor target;  // the other one
  Range host;
  Range device;  // of a copy to a device: the shown range of its target
};

class LateCopies {
 public:
  // Fills the copy's target with NaN.
  void add(LateCopy copy);

  // Executes the copies for which `chosen` is true, in order. Ends the process if the host changed
  // the source of one.
  template <class Chosen>
  void carry_out_where(const Chosen& chosen) {
    for (auto copy = copies_.begin(); copy != copies_.end();) {
      if (!chosen(copy->copy)) {
        ++copy;
        continue;
      }
      carry_out(*copy);
      copy = copies_.erase(copy);
    }
  }

  // The first copy for which `chosen` is true; nullptr if there is none.
  template <class Chosen>
  [[nodiscard]] const LateCopy* find(const Chosen& chosen) const {
    for (const Submitted& submitted : copies_) {
      if (chosen(submitted.copy)) return &submitted.copy;
    }
    return nullptr;
  }

 private:
  struct Submitted {
    LateCopy copy;
    at::Tensor as_given;  // the source's value at submission
  };

  static void carry_out(const Submitted& submitted);

  std::list<Submitted> copies_;
};

}  // namespace motley::far

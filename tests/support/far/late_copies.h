// LateCopies: copies between the host and devices that are given to a stream and not carried out
// yet.
//
// They are carried out as late as a device may do it: when somebody who may rely on one looks, that
// is, the host once it has waited, or an operation that comes after it and touches the same bytes.
// What a copy to the host reads is kept from when it was given: streams cannot change it before
// (Accesses). The host can change what a copy to a device reads, so it is compared.
//
// Threads: the caller's lock.
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
  at::Tensor source;  // of the host, or the hidden memory of the device
  at::Tensor target;  // the other
  Range host;
  Range device;  // of a copy to a device: its target, as shown
};

class LateCopies {
 public:
  // Fills the copy's target with NaN.
  void add(LateCopy copy);

  // Carries out, in their order, those that `chosen` says of. Ends the process where the host
  // changed what one was to read.
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

  // The first that `chosen` says of; nullptr where there is none.
  template <class Chosen>
  [[nodiscard]] const LateCopy* find(const Chosen& chosen) const {
    for (const Kept& kept : copies_) {
      if (chosen(kept.copy)) return &kept.copy;
    }
    return nullptr;
  }

 private:
  struct Kept {
    LateCopy copy;
    at::Tensor as_given;  // what the source held
  };

  static void carry_out(const Kept& kept);

  std::list<Kept> copies_;
};

}  // namespace motley::far

// Whether the devices of a cluster hold a model at all, before anything is measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

// What a machine, or a device with memory of its own, may hold.
struct MemoryThere {
  std::string name;          // for people
  double bytes = 0;          // that a plan may use
  double free_bytes = 0;     // that are there
  bool is_granted = false;   // `bytes` is the cluster file's memory_gib
  bool is_imagined = false;  // what the file says is all that there is to say
};

// kInfeasible where all of it together is less than `least_bytes`: says what each has, by how much
// it is short, and which memory_gib of the cluster file would have to be raised.
[[nodiscard]] std::optional<Error> memory_trouble(const std::vector<MemoryThere>& all,
                                                  double least_bytes);

}  // namespace motley

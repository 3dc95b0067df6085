// The event with which a rank that loads data identifies its data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

struct DataMessage {
  std::uint64_t bytes = 0;
  std::string hash;
  std::vector<std::string> remarks = {};      // warnings about probably unintended data
  std::vector<std::string> class_names = {};  // of the targets 0, 1, …; empty = unnamed,
                                              // or more than an event holds
  std::uint64_t epoch_samples = 0;            // for training; 0 = not counted

  friend bool operator==(const DataMessage&, const DataMessage&) = default;
};

[[nodiscard]] Json data_event(const DataMessage& message);
// kCorrupt if it is malformed.
[[nodiscard]] Result<DataMessage> read_data_event(const Json& event);

}  // namespace motley

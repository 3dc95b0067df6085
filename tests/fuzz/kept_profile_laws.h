// The properties of a stored profile, and a valid one.
#pragma once

#include <string>
#include <string_view>

#include "profiling/cache/profile_store.h"
#include "tests/fuzz/laws.h"

namespace motley {

inline ProfileKey right_key() {
  return {.device = "cpu",
          .processor = "AMD EPYC, 25",
          .threads = 2,
          .cores = 0.5,
          .libraries = {"Motley 0.1.0, kernels 2", "LibTorch 1.13.1"},
          .compute_dtype = "fp32",
          .optimizer = "adamw",
          .transport = "auto, encrypted",
          .elsewhere_bytes = 1 << 20};
}

inline StoredProfile right_stored_profile() {
  StoredProfile stored{.seconds = 40, .smallest = 2, .largest = 16, .device = {}};
  stored.device.machine = "box";
  stored.device.device = "cpu";
  stored.device.threads = 2;
  stored.device.codecs["none"] = {};
  stored.device.layers["gpt2.mlp(32)"] = {{.micro_batch = 1, .forward_s = 0.25}};
  return stored;
}

inline std::string right_stored_text() {
  return stored_profile_to_json(right_key(), right_stored_profile()).dump(1);
}

inline std::string wrong_with_stored_profile(std::string_view text) {
  const auto parse = [](std::string_view bytes, const std::string& source) {
    return parse_stored_profile(bytes, right_key(), source);
  };
  const auto write = [](const StoredProfile& stored) {
    return stored_profile_to_json(right_key(), stored);
  };
  return wrong_with_json(text, parse, write);
}

}  // namespace motley

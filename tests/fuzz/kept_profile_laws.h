// The laws of a stored profile, and a valid one.
#pragma once

#include <string>
#include <string_view>

#include "measure/kept/profile_store.h"
#include "tests/fuzz/laws.h"

namespace motley {

inline ProfileKey right_key() {
  return {.device = "cpu",
          .processor = "AMD EPYC, 25",
          .threads = 2,
          .cores = 0.5,
          .libraries = {"Motley 0.1.0, kernels 2", "LibTorch 1.13.1"},
          .numbers = "fp32",
          .optimizer = "adamw",
          .transport = "auto, encrypted",
          .elsewhere_bytes = 1 << 20};
}

inline KeptProfile right_kept_profile() {
  KeptProfile kept{.seconds = 40, .smallest = 2, .largest = 16, .device = {}};
  kept.device.machine = "box";
  kept.device.device = "cpu";
  kept.device.threads = 2;
  kept.device.codecs["none"] = {};
  kept.device.layers["gpt2.mlp(32)"] = {{.micro_batch = 1, .forward_s = 0.25}};
  return kept;
}

inline std::string right_kept_text() {
  return kept_profile_to_json(right_key(), right_kept_profile()).dump(1);
}

inline std::string wrong_with_kept_profile(std::string_view text) {
  const auto parse = [](std::string_view bytes, const std::string& source) {
    return parse_kept_profile(bytes, right_key(), source);
  };
  const auto write = [](const KeptProfile& kept) {
    return kept_profile_to_json(right_key(), kept);
  };
  return wrong_with_json(text, parse, write);
}

}  // namespace motley

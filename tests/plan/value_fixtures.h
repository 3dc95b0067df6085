// A valid plan, profile and links, as values and as files.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/links.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

inline Plan two_stages() {
  Plan plan;
  plan.model_hash = "abc123";
  plan.ranks = {{"fast", "cpu", 2, 0.5, 1000, 940}, {"slow", "cuda:0", 1, 0.25, 2000, 80}};
  plan.chunks = {{0, 3, {{Rank{0}, 8}}, "fp16"},
                 {3, 2, {{Rank{0}, 3}, {Rank{1}, 5}}, "none", true}};
  plan.micro_batch = 4;
  plan.micro_batches = 8;
  plan.predicted_step_s = 0.1 + 0.2;
  plan.notes = {"because"};
  return plan;
}

inline Profile one_device() {
  Profile profile;
  DeviceProfile& device = profile.devices.emplace_back();
  device.machine = "fast";
  device.device = "cpu";
  device.memory_bytes = 1000;
  device.optimizer_s_per_parameter = 1e-9;
  device.codecs["none"] = {4, 1e-9, 2e-9};
  device.codecs["fp16|zstd(1)"] = {1.75, 3e-9, 4e-9};
  device.message_s = 1e-5;
  device.warnings = {"noisy: forward of attn spread 14 %"};
  device.layers["attn"] = {{1, 0.1, 0.2, 0.01, 0.02, 100, 10}, {4, 0.4, 0.5, 0.01, 0.02, 400, 40}};
  return profile;
}

inline Links both_ways() {
  return {{"fast", "slow", {11.9e6, 0.1 + 0.2}, 1e-5}, {"slow", "fast", {5e6, 2e-4}, 0}};
}

inline std::string plan_text() {
  return plan_to_json(two_stages()).dump(2) + "\n";
}

inline std::string profile_text() {
  return profile_to_json(one_device()).dump(2) + "\n";
}

inline std::string links_text() {
  return links_to_json(both_ways()).dump(2) + "\n";
}

}  // namespace motley

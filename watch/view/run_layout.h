// RunLayout: the ranks of a run and the links between them, from its plan; the static part of the
// display.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json_fwd.h"
#include "plan/plan.h"
#include "record/run_prediction.h"
#include "run_config/config.h"
#include "watch/view/run_health.h"

namespace motley {

struct LayoutLink {
  Rank from;
  Rank to;
  std::string codec;
  double bandwidth_bytes_per_s = 0;  // 0 = unknown
  double predicted_bytes = 0;        // per step; 0 = unknown
};

struct RunLayout {
  std::vector<AssessedRank> ranks;  // [Rank]
  std::vector<double> sent_bytes;   // [Rank] predicted, per step; empty = unknown
  std::vector<LayoutLink> links;
};

// Links join ranks of neighbouring chunks, in both directions, and ranks that share a chunk. With a
// prediction, which must be of this plan, only links in it are included.
[[nodiscard]] RunLayout layout_of(const Plan& plan, const std::optional<RunPrediction>& prediction);

// "gpt2, 4 layers of width 128".
[[nodiscard]] std::string model_text(const ModelConfig& model);

// The members "machines", "ranks", "links" and "plan" of a description.
[[nodiscard]] Json layout_to_json(const Plan& plan, const RunLayout& layout);

}  // namespace motley

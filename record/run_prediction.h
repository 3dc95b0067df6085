// RunPrediction: predictions for a plan's ranks and links that the plan itself does not contain;
// prediction.json in the run's folder. Format: docs/formats/prediction.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

struct RankPrediction {
  double sent_bytes = 0;                // per step, to all peers
  std::int64_t memory_limit_bytes = 0;  // of the rank's process; 0 = unknown

  friend bool operator==(const RankPrediction&, const RankPrediction&) = default;
};

struct LinkPrediction {
  Rank from;
  Rank to;
  double bytes = 0;                  // per step
  double bandwidth_bytes_per_s = 0;  // assumed by the plan

  friend bool operator==(const LinkPrediction&, const LinkPrediction&) = default;
};

struct RunPrediction {
  std::string plan_hash;              // plan_hash_text() of the plan
  std::vector<RankPrediction> ranks;  // [Rank]
  std::vector<LinkPrediction> links;  // pairs with traffic

  friend bool operator==(const RunPrediction&, const RunPrediction&) = default;
};

[[nodiscard]] Json prediction_to_json(const RunPrediction& prediction);
// kCorrupt, naming the source, line and column, if the text is not a prediction of a supported
// version.
[[nodiscard]] Result<RunPrediction> parse_prediction(std::string_view text,
                                                     const std::string& source);

}  // namespace motley

// RunPrediction: what the plan of a run means for its ranks and links, beside what the plan says
// itself; prediction.json in the run's folder. Format: docs/formats/prediction.md.
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
  double sent_bytes = 0;                // of a step, to all peers
  std::int64_t memory_limit_bytes = 0;  // of its process; 0 = unknown

  friend bool operator==(const RankPrediction&, const RankPrediction&) = default;
};

struct LinkPrediction {
  Rank from;
  Rank to;
  double bytes = 0;                  // of a step
  double bandwidth_bytes_per_s = 0;  // that the plan counts on

  friend bool operator==(const LinkPrediction&, const LinkPrediction&) = default;
};

struct RunPrediction {
  std::string plan_hash;              // plan_hash_text() of the plan that it is of
  std::vector<RankPrediction> ranks;  // [Rank]
  std::vector<LinkPrediction> links;  // of pairs that send anything

  friend bool operator==(const RunPrediction&, const RunPrediction&) = default;
};

[[nodiscard]] Json prediction_to_json(const RunPrediction& prediction);
// kCorrupt, naming the source, line and column, when the text is no prediction of a version we
// read.
[[nodiscard]] Result<RunPrediction> parse_prediction(std::string_view text,
                                                     const std::string& source);

}  // namespace motley

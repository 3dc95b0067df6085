// How long the sum over replicas takes by the real transport, and whether it is right.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frame_link.h"
#include "compression/codec.h"
#include "pipeline/allreduce_plan.h"
#include "pipeline/hierarchical_sum.h"

namespace motley {

struct AllreduceSample {
  std::vector<double> runs_s;  // from when all ranks were ready to when this rank had the sums
  double wait_s = 0;           // of the last run
  double cpu_s = 0;            // of this process in the last run
  double largest_error = 0;    // of the last run's sums, beside exact ones; 0 without a lossy codec
};

// Called by every rank of the plan, and by no other rank of the link's group. The first run warms
// up and is not counted. kCorrupt when two ranks end with different bits; else as
// HierarchicalSum::run.
[[nodiscard]] Result<AllreduceSample> measure_allreduce(FrameLink& link,
                                                        Rank self,
                                                        const AllreducePlan& plan,
                                                        const Codec& codec,
                                                        const HierarchicalSumOptions& options,
                                                        int runs);

}  // namespace motley

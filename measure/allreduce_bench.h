// How long the sum over replicas takes by the real transport, and whether it is right.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "compression/feedback/gradient_compressor.h"
#include "pipeline/reduce/hierarchical_allreduce.h"
#include "pipeline/schedule/allreduce_plan.h"

namespace motley {

struct AllreduceSample {
  std::vector<double> runs_s;  // from when all ranks were ready to when this rank had the sums
  double wait_s = 0;           // of the last run
  double cpu_s = 0;            // of this process in the last run
  double bytes_out = 0;        // that this rank sends to other machines in a run, without headers
  double largest_error = 0;    // of the last run's sums, beside exact ones; 0 without a lossy codec
  // Of all runs together and what the ranks still keep for later, beside exact ones, for the first
  // values: with error feedback nothing but rounding, without it all that the messages left out.
  double lost_error = 0;
};

// Called by every rank of the plan, and by no other rank of the link's group. Each run sums the
// same values; the first one warms up and is not counted. The bytes are by the plan's messages,
// each value at what this rank's encoded slices took. kConfig as GradientCompressor::make, kCorrupt
// when two ranks end with different bits; else as HierarchicalAllreduce::run.
[[nodiscard]] Result<AllreduceSample> measure_allreduce(FrameLink& link,
                                                        Rank self,
                                                        const AllreducePlan& plan,
                                                        const CompressorOptions& compression,
                                                        const HierarchicalSumOptions& options,
                                                        int runs);

}  // namespace motley

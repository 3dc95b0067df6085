// Measures the duration of an all-reduce over replicas on the real transport, and its error.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "compression/feedback/gradient_compressor.h"
#include "pipeline/collectives/hierarchical_allreduce.h"
#include "pipeline/schedule/allreduce_plan.h"

namespace motley {

struct AllreduceSample {
  std::vector<double> runs_s;  // from when all ranks are ready until this rank has the sums
  double wait_s = 0;           // of the last run
  double cpu_s = 0;            // processor time of this process in the last run
  double bytes_out = 0;        // sent by this rank to other machines per run, without headers
  double largest_error = 0;    // of the last run's sums against exact ones; 0 without a lossy codec
  // The error of the sums over all runs plus all residuals, for the first values: with error
  // feedback only rounding errors, without it everything that the messages left out.
  double lost_error = 0;
};

// Called by every rank of the plan, and by no other rank of the link's group. Each run all-reduces
// the same values; the first one is a warm-up and is not counted. The bytes are those of the plan's
// messages, at this rank's average encoded size per value. kConfig as in GradientCompressor::make,
// kCorrupt if two ranks end with different bits; else as in HierarchicalAllreduce::run.
[[nodiscard]] Result<AllreduceSample> measure_allreduce(FrameLink& link,
                                                        Rank self,
                                                        const AllreducePlan& plan,
                                                        const CompressorOptions& compression,
                                                        const HierarchicalAllreduceOptions& options,
                                                        int runs);

}  // namespace motley

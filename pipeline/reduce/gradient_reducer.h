// GradientReducer: sums gradients over the ranks that hold them, on a thread of its own, while the
// compute thread still works on the values before them.
//
// A step's sums run one after another, in the order in which all ranks begin them, so that no two
// ranks wait for each other. Each sum follows a mark that the compute thread moves; what lies
// behind it is this thread's until wait() returns. Encoding, adding and waiting for messages
// happen here: the compute thread waits only for what is left when it has nothing else to do.
//
// Where this rank's gradients are clipped before they are summed, none of a step's sums begins
// before all that are clipped are final: their norm is one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "compression/feedback/gradient_compressor.h"
#include "pipeline/reduce/feedback_encoder.h"
#include "pipeline/reduce/hierarchical_allreduce.h"
#include "pipeline/reduce/ready_watermark.h"
#include "pipeline/schedule/process_group.h"
#include "pipeline/schedule/step_effect.h"

namespace motley {

class GradientReducer {
 public:
  // One sum of a step. The same holders and the same number of values in every step.
  struct Task {
    AllreduceId id;
    ProcessGroup holders;     // this rank is one of them
    std::span<float> values;  // lent until wait() returned
  };

  // Both ends are times of now_s().
  struct Span {
    double start_s = 0;  // when the first values were final
    double end_s = 0;
  };

  // The link's transport must outlive it. local_clip: the largest norm of all this rank's gradients
  // that are summed over machines; larger ones are scaled down to it, 0 = none are. kConfig when
  // the options name no codec.
  [[nodiscard]] static Result<std::unique_ptr<GradientReducer>> make(
      const FrameLink& link,
      Rank self,
      const CompressorOptions& options,
      Patience patience,
      double local_clip = 0);

  // Abandons what is under way.
  ~GradientReducer();

  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Begins the sums of a step. kConfig as HierarchicalAllreduce::make. REQUIRES: wait() returned
  // for all sums of the step before.
  [[nodiscard]] Result<void> begin(std::int64_t step, const std::vector<Task>& tasks);

  // Returns whether the step has this sum.
  [[nodiscard]] bool has(const AllreduceId& id) const;

  // The task's values from `first` on are final. REQUIRES: begin() had a task of this id.
  void set_final(const AllreduceId& id, std::size_t first);

  // Waits until the task's values are the sums. Every wait for a message has its deadline in the
  // sum, so that this one ends. Errors as HierarchicalAllreduce::run. REQUIRES: all values are
  // final.
  [[nodiscard]] Result<Span> wait(const AllreduceId& id);

  // After the vote on a step: FeedbackEncoder::end_step. REQUIRES: no sum is under way.
  void end_step(StepEffect effect);

  // Adds to `values` what this rank kept of its messages of that sum so far. The residuals over all
  // ranks are what the sums still owe. REQUIRES: no sum is under way; as many values as the sum
  // has.
  void add_kept(Kept what, const AllreduceId& id, std::span<float> values);
  // Goes on from task.values as kept: by this rank, where all ranks kept the same slices as they do
  // now, or by all. kConfig as begin(). REQUIRES: no sum is under way.
  [[nodiscard]] Result<void> set_kept(Kept what, KeptBy whose, const Task& task);

 private:
  // Made at its first step.
  struct Sum {
    std::unique_ptr<FeedbackEncoder> encoder;
    std::unique_ptr<HierarchicalAllreduce> sum;
  };

  struct Running {
    AllreduceId id;
    HierarchicalAllreduce* sum = nullptr;
    std::span<float> values;
    bool is_clipped = false;
    std::unique_ptr<ReadyWatermark> mark;
    double start_s = 0;                     // the compute thread's; 0: nothing is final
    std::optional<Result<double>> outcome;  // guarded by mutex_: when it ended
  };

  GradientReducer(const FrameLink& link,
                  Rank self,
                  CompressorOptions options,
                  Patience patience,
                  double local_clip);

  Result<Sum*> sum_for(const Task& task);
  Running& running(const AllreduceId& id);
  void work();
  // Of the step's sums before the first.
  void clip();
  [[nodiscard]] Result<double> carry_out(Running& running) const;

  const Rank self_;
  const CompressorOptions options_;
  const Patience patience_;
  const double local_clip_;
  FrameLink link_;  // of the thread
  std::map<AllreduceId, Sum> sums_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;           // guarded by mutex_
  std::size_t next_ = 0;          // guarded by mutex_: the first of running_ that is not done
  std::vector<Running> running_;  // of the step; changed only while all are done
  std::int64_t step_ = 0;
  std::thread thread_;
};

}  // namespace motley

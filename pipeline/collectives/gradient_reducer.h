// GradientReducer: all-reduces gradients on a thread of its own, while the compute thread still
// works on the values before them.
//
// A step's all-reduces run one after another, in one order on all ranks, so that no two ranks wait
// for each other. Each follows a ready watermark that the compute thread moves; the values behind
// it belong to this thread until wait() returns. Encoding, adding and waiting for messages happen
// here. The compute thread waits only for the rest, when it has nothing else to do.
//
// If this rank's gradients are clipped before the all-reduce, none of a step's all-reduces begins
// before all clipped gradients are final, because one norm covers them.
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
#include "pipeline/collectives/feedback_encoder.h"
#include "pipeline/collectives/hierarchical_allreduce.h"
#include "pipeline/collectives/ready_watermark.h"
#include "pipeline/schedule/process_group.h"
#include "pipeline/schedule/step_effect.h"

namespace motley {

class GradientReducer {
 public:
  // One all-reduce of a step, with the same members and number of values in every step.
  struct Task {
    AllreduceId id;
    ProcessGroup group_members;  // this rank is one of them
    std::span<float> values;     // borrowed until wait() has returned
  };

  // Times of now_s().
  struct Span {
    double start_s = 0;  // when the first values were final
    double end_s = 0;
  };

  // The link's transport must outlive it. local_clip: the largest norm of all this rank's gradients
  // that are all-reduced between machines; larger ones are scaled down to it, 0 = unlimited.
  // kConfig if the options name an unknown codec.
  [[nodiscard]] static Result<std::unique_ptr<GradientReducer>> make(
      const FrameLink& link,
      Rank self,
      const CompressorOptions& options,
      StallTimeout stall_timeout,
      double local_clip = 0);

  // Abandons all-reduces under way.
  ~GradientReducer();

  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Begins the all-reduces of a step. kConfig as HierarchicalAllreduce::make. REQUIRES: wait()
  // returned for all all-reduces of the step before.
  [[nodiscard]] Result<void> begin(std::int64_t step, const std::vector<Task>& tasks);

  // Returns whether the step has this all-reduce.
  [[nodiscard]] bool has(const AllreduceId& id) const;

  // The task's values from `first` on are final. REQUIRES: begin() had a task of this id.
  void set_ready(const AllreduceId& id, std::size_t first);

  // Waits until the task's values are all-reduced. Every wait for a message has a deadline there,
  // so this wait ends. Errors as HierarchicalAllreduce::run. REQUIRES: all values are final.
  [[nodiscard]] Result<Span> wait(const AllreduceId& id);

  // After the vote on a step: FeedbackEncoder::end_step. REQUIRES: no all-reduce is running.
  void end_step(StepEffect effect);

  // Adds this rank's error-feedback state of that all-reduce to `values`. The residuals of all
  // ranks are what later steps still have to send. REQUIRES: no all-reduce is running; as many
  // values as the all-reduce has.
  void add_feedback(FeedbackKind what, const AllreduceId& id, std::span<float> values);
  // Sets that state from task.values. kSelf: they are this rank's own, and all ranks encode the
  // same slices as before. kAll: they are the total of all ranks. kConfig as begin(). REQUIRES: no
  // all-reduce is running.
  [[nodiscard]] Result<void> set_feedback(FeedbackKind what, FeedbackScope scope, const Task& task);

 private:
  // Created at its first step.
  struct Reduction {
    std::unique_ptr<FeedbackEncoder> encoder;
    std::unique_ptr<HierarchicalAllreduce> allreduce;
  };

  struct Running {
    AllreduceId id;
    HierarchicalAllreduce* allreduce = nullptr;
    std::span<float> values;
    bool is_clipped = false;
    std::unique_ptr<ReadyWatermark> watermark;
    double start_s = 0;                     // by the compute thread; 0: no value is final
    std::optional<Result<double>> outcome;  // guarded by mutex_: the time when it ended
  };

  GradientReducer(const FrameLink& link,
                  Rank self,
                  CompressorOptions options,
                  StallTimeout stall_timeout,
                  double local_clip);

  Result<Reduction*> reduction_for(const Task& task);
  Running& running(const AllreduceId& id);
  void work();
  // Clips the gradients before the step's first all-reduce.
  void clip();
  [[nodiscard]] Result<double> carry_out(Running& running) const;

  const Rank self_;
  const CompressorOptions options_;
  const StallTimeout stall_timeout_;
  const double local_clip_;
  FrameLink link_;  // used by the thread
  std::map<AllreduceId, Reduction> reductions_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;           // guarded by mutex_
  std::size_t next_ = 0;          // guarded by mutex_: the first unfinished one of running_
  std::vector<Running> running_;  // of the step; changed only while all are finished
  std::int64_t step_ = 0;
  std::thread thread_;
};

}  // namespace motley

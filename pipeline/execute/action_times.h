// ActionTimes: how long each action of a rank computed and how long it waited for others, by the
// marks of the rank's StageClock, summed up and as spans of a trace.
//
// All time between the first and the last mark of a run belongs to one of its actions: a device
// that idles since the host is not ready with its next work loses this time to that work. What a
// device has yet to do when a run ends is told with the next. Used by the compute thread alone.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/ids.h"
#include "pipeline/execute/batch_position.h"
#include "pipeline/execute/stage_clock.h"
#include "pipeline/schedule/action.h"
#include "plan/trace.h"
#include "plan/wait_times.h"

namespace motley {

class ActionTimes {
 public:
  // The clock must outlive it. REQUIRES: it has no marks, and nobody else sets any.
  ActionTimes(Rank self, StageClock& clock) : self_(self), clock_(clock) {}

  // A run begins.
  void begin(const BatchPosition& position);

  // A part of an action ends here, which began where the part before it ended. It waited for others
  // first, for so long as the host knows; a device may have had other work meanwhile.
  void end_part(const Action& action, double waited_s);
  // The same of its last or only part.
  void end(const Action& action, double waited_s = 0);

  struct Sums {
    double compute_s = 0;  // all but waiting
    WaitTimes wait_s;
    double optimizer_s = 0;  // of it the step
  };

  // Of actions of training, or of evaluation, that are over and were not told yet.
  [[nodiscard]] Sums take_sums(bool training);

  // From now on spans of training go to the recorder, with time counted from here, until the next
  // call, which waits for a device to have done what they are of.
  void record(TraceRecorder* recorder);

  // Another thread's work that belongs to the run.
  void add_span(const char* lane, const Action& action, double start_s, double end_s);

  // What is under way: the first action that is not over. Nothing between runs.
  struct UnderWay {
    Action action;
    std::int64_t step = 0;
  };

  // For the end of a run that failed: nothing is recorded any more, as who records may be gone.
  [[nodiscard]] std::optional<UnderWay> under_way();

 private:
  struct Part {
    std::optional<Action> action;  // none: from the end of a run to the beginning of the next
    double waited_s = 0;
    bool is_last = true;
    bool training = true;
    bool recorded = false;
    std::int64_t step = 0;
  };

  void mark(Part part);
  [[nodiscard]] bool records() const;
  void resolve();
  void resolve(const Part& part, double end_s);
  void add_span(const char* lane, const Part& part, double start_s, double end_s);

  const Rank self_;
  StageClock& clock_;
  BatchPosition position_;      // of the run under way
  std::deque<Part> parts_;      // that marks were set for and are not over
  double end_s_ = 0;            // of the last part that is over
  double compute_start_s_ = 0;  // of what was not added as a span yet
  std::array<Sums, 2> sums_;    // [training]
  TraceRecorder* recorder_ = nullptr;
  double record_start_s_ = 0;
};

}  // namespace motley

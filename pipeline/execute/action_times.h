// ActionTimes: the computing and waiting time of each of a rank's actions, from the marks of the
// rank's StageClock, as totals and as spans of a trace.
//
// All time between the first and the last mark of a run belongs to one of its actions: the time
// that a device idles because the host has not submitted its next work counts for that work. Work
// that a device has not finished when a run ends is reported with the next run. Used by the compute
// thread alone.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/ids.h"
#include "pipeline/execute/batch_position.h"
#include "pipeline/execute/stage_clock.h"
#include "pipeline/schedule/action.h"
#include "plan/step_times.h"
#include "plan/trace.h"

namespace motley {

class ActionTimes {
 public:
  // The clock must outlive it. REQUIRES: the clock has no marks, and only this object sets any.
  ActionTimes(Rank self, StageClock& clock) : self_(self), clock_(clock) {}

  // Called at the start of a run.
  void begin(const BatchPosition& position);

  // A part of an action ends here; it began where the part before it ended. It first waited
  // `waited_s` for other ranks, as measured by the host; a device may have had other work
  // meanwhile.
  void end_part(const Action& action, double waited_s);
  // The same for the action's last or only part.
  void end(const Action& action, double waited_s = 0);

  // Totals of finished actions, of training or of evaluation, that were not returned before; 0 for
  // codecs, whose times no mark separates.
  [[nodiscard]] StepTimes take_totals(bool training);

  // From now on spans of training go to the recorder, with time counted from here. The next call
  // ends this, after waiting for a device to finish the recorded work.
  void record(TraceRecorder* recorder);

  // Adds work of another thread that belongs to the run.
  void add_span(const char* lane, const Action& action, double start_s, double end_s);

  // The first unfinished action.
  struct UnderWay {
    Action action;
    std::int64_t step = 0;
  };

  // nullopt between runs. For the end of a failed run: recording stops, as the recorder may be
  // gone.
  [[nodiscard]] std::optional<UnderWay> under_way();

 private:
  struct Part {
    std::optional<Action> action;  // nullopt: from the end of a run to the beginning of the next
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
  BatchPosition position_;         // of the current run
  std::deque<Part> parts_;         // marked but not finished
  double end_s_ = 0;               // of the last finished part
  double compute_start_s_ = 0;     // start of what was not added as a span yet
  std::array<StepTimes, 2> sums_;  // [training]
  TraceRecorder* recorder_ = nullptr;
  double record_start_s_ = 0;
};

}  // namespace motley

// RunLines: what the lines of a run's folder tell, metrics.jsonl and events.jsonl, as they come. A
// long run is read piece by piece, so that who reads it can do something else in between.
//
// A line that cannot be read is left out, and memory is bounded. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "cluster/follow/run_event.h"
#include "cluster/run/run_folder.h"
#include "watch/view/history.h"
#include "watch/view/line_follower.h"
#include "watch/view/recent_steps.h"
#include "watch/view/run_totals.h"

namespace motley {

// How much of what lies there was read.
struct ReadingProgress {
  std::int64_t read_bytes = 0;
  std::int64_t bytes = 0;

  friend bool operator==(const ReadingProgress&, const ReadingProgress&) = default;
};

// "reading the run: 45 % of 306 MB".
[[nodiscard]] std::string reading_text(const ReadingProgress& progress);

class RunLines {
 public:
  explicit RunLines(const RunFolder& folder);

  struct News {
    bool steps_begin_anew = false;  // those that were given are no longer so
    bool events_begin_anew = false;
    std::int64_t steps = 0;  // that came
    std::size_t events = 0;  // that came
    bool has_more = false;   // to be asked for at once
  };

  // Of each file about LineFollower::kPieceBytes at most. Events come first: they say what becomes
  // of the steps.
  News poll();

  // While all that was there is read for the first time, or more than kBehindBytes are left.
  [[nodiscard]] const std::optional<ReadingProgress>& reading() const { return reading_; }

  // Whether steps were done in the launch that the events tell of, and their file is not there.
  [[nodiscard]] bool lacks_metrics() const;

  // Whether there is a file of steps that can be read.
  [[nodiscard]] bool has_metrics() const { return metrics_lines_.has_file(); }

  // When either file was last written, since 1970 UTC; 0 where there is none.
  [[nodiscard]] double written_at_s() const;

  // The number of the last step that is done; 0 = none.
  [[nodiscard]] std::int64_t last_step() const;

  [[nodiscard]] const History& history() const { return history_; }

  [[nodiscard]] const RecentSteps& recent() const { return recent_; }

  [[nodiscard]] const RunTotals& totals() const { return totals_; }

  // The newest kEventsMax.
  [[nodiscard]] const std::deque<RunEvent>& events() const { return events_; }

  static constexpr std::size_t kEventsMax = 1000;
  static constexpr std::int64_t kBehindBytes = std::int64_t{32} << 20;

 private:
  void read_metrics(News& news);
  void read_events(News& news);
  void take(StepMetrics metrics);
  void take(RunEvent event);
  void see_how_far(const News& news);

  LineFollower metrics_lines_;
  LineFollower event_lines_;
  History history_;
  RecentSteps recent_;
  RunTotals totals_;
  std::deque<RunEvent> events_;
  std::optional<ReadingProgress> reading_;
  bool has_caught_up_ = false;
  // Of the launch that is told of last: the step that it began after, and the last it is known of.
  std::optional<std::int64_t> launch_step_;
  std::int64_t told_step_ = 0;
};

}  // namespace motley

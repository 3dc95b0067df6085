// RunLines: incremental reading of metrics.jsonl and events.jsonl. A long run is read in pieces, so
// that the caller can do other work in between.
//
// Invalid lines are skipped, and memory is bounded. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "record/run_event.h"
#include "record/run_folder.h"
#include "watch/view/history.h"
#include "watch/view/line_follower.h"
#include "watch/view/recent_steps.h"
#include "watch/view/run_totals.h"

namespace motley {

// How much of the two files has been read.
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

  struct NewLines {
    bool steps_begin_anew = false;  // earlier steps are void
    bool events_begin_anew = false;
    std::int64_t steps = 0;  // new ones
    std::size_t events = 0;  // new ones
    bool has_more = false;   // unread data remains: poll again at once
  };

  // Reads at most about LineFollower::kPieceBytes of each file. Events come first: they mark the
  // launches that the steps belong to.
  NewLines poll();

  // Set during the first complete read, or while more than kBehindBytes are unread.
  [[nodiscard]] const std::optional<ReadingProgress>& reading() const { return reading_; }

  // Whether steps were done in the current launch but metrics.jsonl does not exist.
  [[nodiscard]] bool lacks_metrics() const;

  // Whether a readable metrics.jsonl exists.
  [[nodiscard]] bool has_metrics() const { return metrics_lines_.has_file(); }

  // The newer modification time of the two files, since 1970 UTC; 0 without a file.
  [[nodiscard]] double written_at_s() const;

  // The number of the last finished step; 0 = none.
  [[nodiscard]] std::int64_t last_step() const;

  [[nodiscard]] const History& history() const { return history_; }

  [[nodiscard]] const RecentSteps& recent() const { return recent_; }

  [[nodiscard]] const RunTotals& totals() const { return totals_; }

  // The newest kEventsMax.
  [[nodiscard]] const std::deque<RunEvent>& events() const { return events_; }

  static constexpr std::size_t kEventsMax = 1000;
  static constexpr std::int64_t kBehindBytes = std::int64_t{32} << 20;

 private:
  void read_metrics(NewLines& news);
  void read_events(NewLines& news);
  void take(StepMetrics metrics);
  void take(RunEvent event);
  void update_progress(const NewLines& news);

  LineFollower metrics_lines_;
  LineFollower event_lines_;
  History history_;
  RecentSteps recent_;
  RunTotals totals_;
  std::deque<RunEvent> events_;
  std::optional<ReadingProgress> reading_;
  bool has_caught_up_ = false;
  // Of the last known launch: the step after which it began, and the last step it reported.
  std::optional<std::int64_t> launch_step_;
  std::int64_t reported_step_ = 0;
};

}  // namespace motley

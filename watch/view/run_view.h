// RunView: a live or finished run, read from its folder. Reads files and never writes one, so
// viewers cannot affect a training. Pages and terminals show the documents made here.
//
// All contents of the folder are untrusted: what cannot be read is left out, and memory is bounded
// for runs of any length. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "record/run_folder.h"
#include "watch/view/file_problems.h"
#include "watch/view/run_files.h"
#include "watch/view/run_layout.h"
#include "watch/view/run_lines.h"
#include "watch/view/run_state.h"

namespace motley {

class RunView {
 public:
  // Reads everything, which may take long. Returns the error of readable() if there is one.
  // `now_s`: since 1970 UTC.
  [[nodiscard]] static Result<RunView> open(const std::filesystem::path& run, double now_s);
  // Reads for about kBegin_s; polls read the rest.
  [[nodiscard]] static Result<RunView> begin(const std::filesystem::path& run, double now_s);

  struct Changes {
    bool description = false;
    bool timeline = false;
    bool state = false;        // also set by new steps and events
    bool begins_anew = false;  // earlier steps are void: request the whole history
    std::int64_t steps = 0;    // new ones
    std::size_t events = 0;    // new ones
    bool has_more = false;     // unread data remains: poll again at once
  };

  // Whether the run's folder exists and can be read: kConfig if it holds no run, kCorrupt if this
  // process may not read it.
  [[nodiscard]] Result<void> readable() const;

  // Reads new data, at most a piece that takes a fraction of a second. Without more data, a few
  // polls per second suffice; nothing is read twice.
  Changes poll(double now_s);

  [[nodiscard]] Json description() const;
  [[nodiscard]] Json state() const;
  // The steps after `after`, thinned to at most `points`, but not below History::kPointsMin.
  [[nodiscard]] Json history(std::size_t points, std::int64_t after = 0) const;
  // The newest `count`, in order.
  [[nodiscard]] Json events(std::size_t count) const;
  // The last traced step, and a simulated one.
  [[nodiscard]] Json timeline();

  // The progress of the first read; until it ends, all documents describe the part read so far.
  [[nodiscard]] const std::optional<ReadingProgress>& reading() const { return lines_.reading(); }

  // The number of the last finished step; 0 = none.
  [[nodiscard]] std::int64_t last_step() const { return lines_.last_step(); }

  // Whether the run is still active, as far as its folder shows.
  [[nodiscard]] bool is_under_way() const {
    return state_.phase == RunPhase::kPreparing || state_.phase == RunPhase::kTraining ||
           state_.phase == RunPhase::kRestarting;
  }

  // The contents of the documents above, as typed values.
  [[nodiscard]] std::string name() const;
  // The health of a live run; for other runs how it ended, and the lesson from it.
  [[nodiscard]] RunHealth health() const;

  [[nodiscard]] RunPhase phase() const { return state_.phase; }

  [[nodiscard]] const std::optional<Config>& config() const { return files_.config(); }

  // The plan of layout().
  [[nodiscard]] const std::optional<Plan>& plan() const { return files_.plan(); }

  [[nodiscard]] const std::optional<RunLayout>& layout() const { return layout_; }

  [[nodiscard]] const RecentSteps& recent() const { return lines_.recent(); }

  [[nodiscard]] const RunTotals& totals() const { return lines_.totals(); }

  static constexpr double kBegin_s = 1;
  static constexpr std::size_t kSpansMax = 20'000;  // per timeline: the longest

 private:
  explicit RunView(const std::filesystem::path& run);

  void read_lines(Changes& changes);
  void observe_state(double now_s, Changes& changes);
  // `now_s` becomes the start time of new observations.
  void observe_folder(double now_s);
  [[nodiscard]] AssessedRun assessed() const;
  [[nodiscard]] RunHealth with_file_problems(RunHealth health) const;
  // With the best evaluation, if the run compares them.
  [[nodiscard]] RunHealth with_best(RunHealth health) const;
  [[nodiscard]] double eta_s() const;
  [[nodiscard]] Json evaluation() const;  // the last one
  // Whether the devices of its plan do; true without a plan.
  [[nodiscard]] bool computes() const;

  RunFolder folder_;
  RunFiles files_;
  TracedFile measured_;
  TracedFile predicted_;
  RunLines lines_;
  std::optional<RunLayout> layout_;
  RunState state_;
  std::string launcher_;
  double launcher_since_s_ = 0;  // time of its first observation
  double looked_at_s_ = 0;       // time of the last check for a launcher
  FolderObservations folder_observations_;
};

}  // namespace motley

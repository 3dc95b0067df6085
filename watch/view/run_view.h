// RunView: a run as its folder tells of it, while it is written and afterwards. Reads files and
// never writes one, so that looking cannot hurt a training. What pages and terminals show is made
// here.
//
// Whatever stands in the folder is checked: what cannot be read is left out, and memory is bounded
// however long the run is. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "cluster/run/run_folder.h"
#include "watch/view/run_files.h"
#include "watch/view/run_layout.h"
#include "watch/view/run_lines.h"
#include "watch/view/run_state.h"
#include "watch/view/run_troubles.h"

namespace motley {

class RunView {
 public:
  // Reads all that is there, which may take long. As readable() where that says no. `now_s`: since
  // 1970 UTC.
  [[nodiscard]] static Result<RunView> open(const std::filesystem::path& run, double now_s);
  // Reads of it what about kBegin_s suffice for; polls read the rest.
  [[nodiscard]] static Result<RunView> begin(const std::filesystem::path& run, double now_s);

  struct Changes {
    bool description = false;
    bool timeline = false;
    bool state = false;        // also when steps or events came
    bool begins_anew = false;  // steps that were given are no longer so: ask for all of history
    std::int64_t steps = 0;    // that came
    std::size_t events = 0;    // that came
    bool has_more = false;     // to be polled for at once
  };

  // Whether the run's folder is there and can be read: kConfig where it holds no run, kCorrupt
  // where this process may not look.
  [[nodiscard]] Result<void> readable() const;

  // Reads what came, of a lot of it a piece that takes a small part of a second. Some times a
  // second is often enough where there is no more; nothing is read twice.
  Changes poll(double now_s);

  [[nodiscard]] Json description() const;
  [[nodiscard]] Json state() const;
  // Of the steps after `after`, at most so many points, and no fewer than History::kPointsMin.
  [[nodiscard]] Json history(std::size_t points, std::int64_t after = 0) const;
  // The newest `count`, in order.
  [[nodiscard]] Json events(std::size_t count) const;
  // The last step that was traced, and one as it was predicted.
  [[nodiscard]] Json timeline();

  // How far it is with a run that takes a while to read: what is told until then is of its part.
  [[nodiscard]] const std::optional<ReadingProgress>& reading() const { return lines_.reading(); }

  // The number of the last step that is done; 0 = none.
  [[nodiscard]] std::int64_t last_step() const { return lines_.last_step(); }

  // Whether more is to come, as far as can be seen.
  [[nodiscard]] bool is_under_way() const {
    return state_.phase == RunPhase::kPreparing || state_.phase == RunPhase::kTraining ||
           state_.phase == RunPhase::kRestarting;
  }

  // What the views above are made of, as typed values.
  [[nodiscard]] std::string name() const;
  // Of how it goes; of a run that is not under way, how it ended, and what is learnt of it.
  [[nodiscard]] RunVerdict verdict() const;

  [[nodiscard]] RunPhase phase() const { return state_.phase; }

  [[nodiscard]] const std::optional<Config>& config() const { return files_.config(); }

  // Of layout().
  [[nodiscard]] const std::optional<Plan>& plan() const { return files_.plan(); }

  [[nodiscard]] const std::optional<RunLayout>& layout() const { return layout_; }

  [[nodiscard]] const RecentSteps& recent() const { return lines_.recent(); }

  [[nodiscard]] const RunTotals& totals() const { return lines_.totals(); }

  static constexpr double kBegin_s = 1;
  static constexpr std::size_t kSpansMax = 20'000;  // of a timeline: the longest

 private:
  explicit RunView(const std::filesystem::path& run);

  void read_lines(Changes& changes);
  void look_at_state(double now_s, Changes& changes);
  // `now_s`: since when it is seen, where that is new.
  void look_at_folder(double now_s);
  [[nodiscard]] JudgedRun judged() const;
  [[nodiscard]] RunVerdict with_troubles(RunVerdict verdict) const;
  [[nodiscard]] double eta_s() const;
  [[nodiscard]] bool is_rehearsal() const;

  RunFolder folder_;
  RunFiles files_;
  TracedFile measured_;
  TracedFile predicted_;
  RunLines lines_;
  std::optional<RunLayout> layout_;
  RunState state_;
  std::string launcher_;
  double launcher_since_s_ = 0;  // that it was seen first
  double looked_at_s_ = 0;       // for a launcher
  FolderSigns folder_signs_;
};

}  // namespace motley

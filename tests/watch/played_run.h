// A run that tests emulate: three machines, whose steps advance when a test calls play(). Its
// answers have the format of docs/formats/watch.md. May be queried on one thread and advanced on
// another.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "watch/http/run_source.h"

namespace motley {

class PlayedRun : public RunSource {
 public:
  explicit PlayedRun(std::int64_t steps) : steps_(steps) {}

  // Completes `count` more steps.
  void play(std::int64_t count);
  // Removes the steps after it, as a resume does.
  void cut_to(std::int64_t step);
  void happens(const std::string& kind, const std::string& text);
  // `state`: "ended" or "failed".
  void ends(const std::string& state, const std::string& text);
  // From now on every look() leaves something to read.
  void is_long();
  // From now on every query returns this error.
  void breaks(Error error);

  RunChanges look() override;
  Result<std::string> part(RunDocument part) override;
  Result<std::string> history(std::size_t points, std::int64_t after_step) override;
  Result<std::string> events(std::size_t newest) override;
  Result<std::string> metrics(MetricsFormat format) override;

  [[nodiscard]] int looks() const;

 private:
  [[nodiscard]] Json description() const;
  [[nodiscard]] Json state() const;
  [[nodiscard]] Json health() const;

  mutable std::mutex mutex_;  // guards all members below
  std::int64_t steps_;
  std::int64_t step_ = 0;
  std::string run_state_ = "training";
  std::string text_;
  std::vector<Json> events_;
  std::vector<Error> broken_;  // at most one
  RunChanges changes_{.description = true, .state = true, .events = true, .timeline = true};
  bool is_long_ = false;
  int looks_ = 0;
};

}  // namespace motley

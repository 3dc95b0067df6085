// The properties of the lines that a run writes for viewers: metrics.jsonl and events.jsonl. Also
// some valid ones of each.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "base/json.h"
#include "record/run_event.h"
#include "record/step_metrics.h"
#include "tests/fuzz/laws.h"
#include "watch/view/history.h"
#include "watch/view/recent_steps.h"
#include "watch/view/run_health.h"

namespace motley {

inline StepMetrics right_metrics(std::int64_t step) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.outcome.loss = 2.5;
  metrics.outcome.tokens = 512;
  metrics.step_s = 0.5;
  metrics.predicted_step_s = 0.4;
  metrics.outcome.lr = 3e-4;
  metrics.outcome.grad_norm = 1.5;
  metrics.wire_bytes = 3000;
  metrics.bubble = 0.25;
  metrics.losses = {0.1, 0.15, 0.01, 0.02};
  metrics.wait_s = {0.1, 0.2};
  metrics.eval_loss = 2.75;
  metrics.without_targets = step % 2 == 0;
  metrics.time_s = 1.8e9 + static_cast<double>(step);
  metrics.ranks = {{{0.4, 0.01, 0.02, {{0.05, 0.05}}}, 1000}, {{0.3, 0.01, 0.02, {{0, 0.2}}}, 0}};
  metrics.links = {{Rank{0}, Rank{1}, 2000}, {Rank{1}, Rank{0}, 1000}};
  return metrics;
}

// A line of an earlier version, with fewer fields.
inline std::string early_metrics_line() {
  return R"({"step":7,"loss":null,"tokens":8192,"step_s":0.41,"wait_s":[0.02,0.04],"skipped":true})";
}

inline std::string right_run_lines() {
  const RunEvent event{1.5e9, 7, RunEventKind::kCheckpoint, "saved step 7", "box"};
  return metrics_to_json(right_metrics(6)).dump() + "\n" + early_metrics_line() + "\n" +
         run_event_to_json(event).dump() + "\n" + metrics_to_json(right_metrics(8)).dump() + "\n";
}

// The shown data has no more points than requested, and only finite numbers.
inline std::string wrong_with_shown_steps(const History& history, const RecentSteps& recent) {
  const Json columns = history.columns(History::kPointsMin);
  if (columns["step"].size() > History::kPointsMin) return "more points than were asked for";
  for (const Json& document :
       {columns, recent.ranks_to_json(), recent.links_to_json(), recent.losses_to_json()}) {
    if (!parse_json(document.dump(), "view").ok()) return "shows what is no JSON";
  }
  AssessedRun run;
  run.predicted_step_s = 0.4;
  run.ranks = {{"desk", 0.3, 1000}, {"box", 0.2, 1000}};
  run.steps = recent.steps();
  run.intervals = recent.intervals();
  return assess(run).text.empty() ? "a verdict without a word" : "";
}

inline std::string wrong_with_metrics_json(const Json& json) {
  const auto metrics = metrics_from_json(json, "p.json");
  if (!metrics.ok()) return wrong_error(metrics.error(), {ErrorCode::kCorrupt}, "p.json");
  const Json written = parse_json(metrics_to_json(*metrics).dump(), "p.json").value();
  const auto again = metrics_from_json(written, "p.json");
  if (!again.ok()) return "written and refused: " + describe(again.error());
  return metrics_to_json(*again).dump() == written.dump() ? "" : "written and read, not the same";
}

inline std::string wrong_with_run_event(const Json& json) {
  const auto event = run_event_from_json(json, "p.json");
  if (!event.ok()) return wrong_error(event.error(), {ErrorCode::kCorrupt}, "p.json");
  return wrong_way_back(event, run_event_from_json(run_event_to_json(*event), "p.json"),
                        run_event_to_json);
}

// Reads any lines as those of a run.
inline std::string wrong_with_run_lines(std::string_view bytes) {
  History history;
  RecentSteps recent;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    const auto json = parse_json(line, "p.json");
    if (!json.ok()) continue;
    for (const std::string& wrong : {wrong_with_metrics_json(*json), wrong_with_run_event(*json)}) {
      if (!wrong.empty()) return wrong;
    }
    auto metrics = metrics_from_json(*json, "p.json");
    if (!metrics.ok()) continue;
    history.add(*metrics);
    recent.add(*std::move(metrics));
  }
  return wrong_with_shown_steps(history, recent);
}

}  // namespace motley

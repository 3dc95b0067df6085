// The properties of a run's report and of its prediction, and a valid one of each.
#pragma once

#include <string>
#include <string_view>

#include "record/report_text.h"
#include "record/run_prediction.h"
#include "tests/fuzz/laws.h"

namespace motley {

inline std::string right_report() {
  RunReport report;
  report.first_step = 1;
  report.measured_steps = 39;
  report.step_s = {0.4, 0.5};
  report.ranks = {
      {"stage 1 (desktop)", "desktop", "cpu", {0.3, 0.31}, 0.1, 0.05, {1000, 0}, {160, 160}},
      {"stage 2 (box)", "box", "virtual:0", {0.2, 0.4}, 0.1, 0, {500, 777}, {0, 160}}};
  report.links = {{0, "desktop", "box", "fp16|zstd(1)", 160, 320}};
  report.class_names = {"cat", "dog"};
  report.end = {40, 4, "machine box was lost"};
  return report_to_json(report).dump(2);
}

inline std::string right_prediction() {
  const RunPrediction prediction{
      "9f3c5a1b", {{320, 1 << 30}, {160, 0}}, {{Rank{0}, Rank{1}, 320, 12.5e6}}};
  return prediction_to_json(prediction).dump(2);
}

inline std::string wrong_with_prediction(std::string_view text) {
  return wrong_with_json(text, parse_prediction, prediction_to_json);
}

// A report that was read can be printed, and no number makes the text very long.
inline std::string wrong_with_report(std::string_view text) {
  constexpr std::size_t kShownBytesPerByte = 40;
  constexpr std::size_t kShownBytes = 1000;
  const std::string wrong = wrong_with_json(text, parse_report, report_to_json);
  const auto report = parse_report(text, "p.json");
  if (!wrong.empty() || !report.ok()) return wrong;
  return report_text(*report).size() <= kShownBytes + kShownBytesPerByte * text.size()
             ? ""
             : "shown at great length";
}

}  // namespace motley

// Screen: a run as lines of text for a terminal, made of the documents of a RunView. Pure.
//
// What stands in a run's folder may be anything: names and texts are shown with '?' for what could
// move the cursor or change the colours of a terminal (watch/terminal/screen_text.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace motley {

enum class LineStyle { kPlain, kStrong, kFaint, kGood, kWatch, kBad };

struct ScreenLine {
  std::string text;
  LineStyle style = LineStyle::kPlain;

  friend bool operator==(const ScreenLine&, const ScreenLine&) = default;
};

// What a RunView gives.
struct ScreenDocuments {
  const Json& description;
  const Json& state;
  const Json& history;
  const Json& events;
};

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// As many lines as fit at most, none wider than the screen; the verdict and its advice are whole,
// in as many lines as they need. What is left out where it is low: first events, the bar and the
// curve, then links and ranks that do not fit.
[[nodiscard]] std::vector<ScreenLine> screen_lines(const ScreenDocuments& run, ScreenSize size);

// The same in one line, for where nothing can be redrawn:
//   step 120/1000  loss 2.314  1,234 tok/s  412.00 ms a step  ETA 0:05:31  as planned: …
[[nodiscard]] std::string one_line(const Json& state);

// "12:03:11  checkpoint  saved runs/a/checkpoints/step-000100", the time in UTC.
[[nodiscard]] std::string event_line(const Json& event);

}  // namespace motley

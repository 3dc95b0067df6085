// Screen: a run as lines of text for a terminal, from the documents of a RunView. Pure.
//
// A run's folder may contain arbitrary bytes: control and invalid characters in names and texts are
// shown as '?' (watch/terminal/screen_text.h).
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

// The documents of a RunView.
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

// At most size.rows lines, none wider than the screen; the verdict and its advice are complete,
// over as many lines as they need. On low screens first events, bar and curve are left out, then
// links and ranks that do not fit.
[[nodiscard]] std::vector<ScreenLine> screen_lines(const ScreenDocuments& run, ScreenSize size);

// A one-line summary, for output that cannot be redrawn:
//   step 120/1000  loss 2.314  1,234 tok/s  412.00 ms a step  ETA 0:05:31  as planned: …
[[nodiscard]] std::string one_line(const Json& state);

// "12:03:11  checkpoint  saved runs/a/checkpoints/step-000100", the time in UTC.
[[nodiscard]] std::string event_line(const Json& event);

}  // namespace motley

#include "watch/terminal/terminal_watch.h"

#include <poll.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/system/patient_writer.h"
#include "cluster/process/status_line.h"
#include "cluster/process/stop_signals.h"
#include "cluster/process/work_line.h"
#include "watch/terminal/raw_terminal.h"
#include "watch/terminal/screen.h"
#include "watch/view/run_view.h"

namespace motley {
namespace {

constexpr double kLook_s = 0.5;
constexpr double kLine_s = 5;  // between two lines, where nothing can be redrawn
constexpr std::size_t kEventsShown = 100;

// A screen of its own, without a cursor, and lines that are cut where they are too long.
constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr const char* kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr const char* kHome = "\x1b[H";
constexpr const char* kEndOfLine = "\x1b[K";
constexpr const char* kRestOfScreen = "\x1b[J";
constexpr const char* kUsual = "\x1b[0m";

const char* colour_of(LineStyle style) {
  switch (style) {
    case LineStyle::kPlain:
      return "";
    case LineStyle::kStrong:
      return "\x1b[1m";
    case LineStyle::kFaint:
      return "\x1b[2m";
    case LineStyle::kGood:
      return "\x1b[32m";
    case LineStyle::kWatch:
      return "\x1b[33m";
    case LineStyle::kBad:
      return "\x1b[31m";
  }
  return "";
}

std::string drawing(const std::vector<ScreenLine>& lines, bool in_colour) {
  std::string text = kHome;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string colour = in_colour ? colour_of(lines[i].style) : "";
    text += (i == 0 ? "" : "\r\n") + colour + lines[i].text + (colour.empty() ? "" : kUsual) +
            kEndOfLine;
  }
  return text + kRestOfScreen;
}

std::string screen_of(const RunView& view, bool in_colour) {
  const TerminalSize terminal = terminal_size();
  const Json description = view.description();
  const Json state = view.state();
  const Json history = view.history(terminal.columns);
  const Json events = view.events(kEventsShown);
  return drawing(
      screen_lines({description, state, history, events}, {terminal.columns, terminal.rows}),
      in_colour);
}

// A long one takes a while to read.
Result<RunView> opened(const std::filesystem::path& run) {
  const WorkLine line("reading the run");
  return RunView::open(run, unix_time_s());
}

// Waits for a look's time, a key or a signal. Whether the person wants to leave, or why it must.
Result<bool> is_leaving(StopSignals& signals, RawTerminal& terminal, double seconds) {
  pollfd fds[] = {{signals.fd(), POLLIN, 0}, {terminal.fd(), POLLIN, 0}};
  ::poll(fds, 2, static_cast<int>(std::ceil(seconds * 1000)));
  if (auto stop = signals.take()) {
    if (stop->code == ErrorCode::kInterrupted) return true;
    return *std::move(stop);
  }
  constexpr char kControlC = 3;
  while (const auto key = terminal.key()) {
    if (*key == 'q' || *key == 'Q' || *key == kControlC) return true;
  }
  // A terminal that was closed is always readable, and has no keys.
  if ((fds[1].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return true;
  return false;
}

Result<void> redraw_until_left(RunView& view, bool in_colour) {
  StopSignals signals;
  RawTerminal terminal;
  PatientWriter out(STDOUT_FILENO);
  out.write(kEnter);
  std::string drawn;
  Result<bool> leaving = false;
  while (leaving.ok() && !*leaving) {
    view.poll(unix_time_s());
    std::string screen = screen_of(view, in_colour);
    // What was not taken is drawn again.
    if (screen != drawn && out.write(screen)) drawn = std::move(screen);
    leaving = is_leaving(signals, terminal, kLook_s);
  }
  out.write(std::string(kLeave) + one_line(view.state()) + "\n");
  if (!leaving.ok()) return leaving.error();
  return {};
}

// What is to be said of a run that cannot be redrawn.
class Lines {
 public:
  explicit Lines(const RunView& view) : view_(view) {}

  void say(const RunView::Changes& changes) {
    const Json events = view_.events(changes.events);
    for (const Json& event : events) say(event_line(event));
    const bool is_due = !said_at_s_ || now_s() - *said_at_s_ >= kLine_s;
    if (changes.state && is_due) say_state();
  }

  void say_state() {
    said_at_s_ = now_s();
    const std::string line = one_line(view_.state());
    if (line == last_) return;
    say(line);
    last_ = line;
  }

 private:
  void say(const std::string& line) { out_.write(line + "\n"); }

  const RunView& view_;
  PatientWriter out_{STDOUT_FILENO};
  std::optional<double> said_at_s_;
  std::string last_;
};

Result<void> tell_until_end(RunView& view) {
  StopSignals signals;
  RawTerminal no_terminal;
  Lines lines(view);
  lines.say_state();
  while (view.is_under_way()) {
    MOTLEY_ASSIGN(const bool leaving, is_leaving(signals, no_terminal, kLook_s));
    if (leaving) return {};
    lines.say(view.poll(unix_time_s()));
  }
  lines.say_state();
  return {};
}

}  // namespace

Result<void> watch_in_terminal(const std::filesystem::path& run,
                               const TerminalWatchOptions& options) {
  MOTLEY_ASSIGN(RunView view, opened(run));
  if (!is_live_terminal(stdout, options.term)) return tell_until_end(view);
  const bool in_colour = options.no_color == nullptr || *options.no_color == '\0';
  return redraw_until_left(view, in_colour);
}

}  // namespace motley

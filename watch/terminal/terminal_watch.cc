#include "watch/terminal/terminal_watch.h"

#include <poll.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/process/status_line.h"
#include "base/process/stop_signals.h"
#include "base/system/non_blocking_writer.h"
#include "watch/terminal/pause_signals.h"
#include "watch/terminal/raw_terminal.h"
#include "watch/terminal/screen.h"
#include "watch/view/run_view.h"

namespace motley {
namespace {

constexpr double kLook_s = 0.5;
constexpr double kLine_s = 5;  // between two lines if the output cannot be redrawn
constexpr std::size_t kEventsShown = 100;

// Alternate screen, hidden cursor, no line wrapping.
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

// The delay before the next poll: none if unread data remains.
double pause_s(const RunView::Changes& changes) {
  return changes.has_more ? 0 : kLook_s;
}

// The sources of user input: signals and keys.
struct Person {
  StopSignals stops;
  PauseSignals pauses;
  RawTerminal terminal;
};

enum class ScreenCommand { kNothing, kLeaveScreen, kScreenAgain };

// After ^Z the terminal belongs to other programs until SIGCONT. After any other stop only SIGCONT
// is seen.
ScreenCommand command_after(PauseSignal signal,
                            Person& person,
                            const std::function<void()>& leave_screen) {
  if (signal == PauseSignal::kPause) {
    leave_screen();
    person.terminal.give_back();
    person.pauses.pause();
    while (person.pauses.take()) {
    }
  }
  person.terminal.take();
  return ScreenCommand::kScreenAgain;
}

// Waits for the given time, a key or a signal. Returns the requested action, or the error that ends
// the command.
Result<ScreenCommand> command_within(double seconds,
                                     Person& person,
                                     const std::function<void()>& leave_screen) {
  pollfd fds[] = {{person.terminal.fd(), POLLIN, 0},
                  {person.stops.fd(), POLLIN, 0},
                  {person.pauses.fd(), POLLIN, 0}};
  ::poll(fds, std::size(fds), static_cast<int>(std::ceil(seconds * 1000)));
  if (auto stop = person.stops.take()) {
    if (stop->code == ErrorCode::kInterrupted) return ScreenCommand::kLeaveScreen;
    return *std::move(stop);
  }
  if (const auto signal = person.pauses.take()) return command_after(*signal, person, leave_screen);
  constexpr char kControlC = 3;
  while (const auto key = person.terminal.key()) {
    if (*key == 'q' || *key == 'Q' || *key == kControlC) return ScreenCommand::kLeaveScreen;
  }
  // A closed terminal is always readable and has no keys.
  if ((fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return ScreenCommand::kLeaveScreen;
  return ScreenCommand::kNothing;
}

Result<void> redraw_until_left(RunView& view, bool in_colour) {
  Person person;
  NonBlockingWriter out(STDOUT_FILENO);
  const auto leave_screen = [&out] { out.write(kLeave); };
  std::string drawn;
  Deadline drawn_lately = Deadline::after_s(0);
  Result<ScreenCommand> screen_command = ScreenCommand::kScreenAgain;
  while (screen_command.ok() && *screen_command != ScreenCommand::kLeaveScreen) {
    if (*screen_command == ScreenCommand::kScreenAgain) {
      out.write(kEnter);
      drawn.clear();
    }
    const RunView::Changes changes = view.poll(unix_time_s());
    if (!changes.has_more || drawn_lately.passed()) {
      std::string screen = screen_of(view, in_colour);
      // A screen that was not written is drawn again.
      if (screen != drawn && out.write(screen)) drawn = std::move(screen);
      drawn_lately = Deadline::after_s(kLook_s);
    }
    screen_command = command_within(pause_s(changes), person, leave_screen);
  }
  out.write(std::string(kLeave) + one_line(view.state()) + "\n");
  if (!screen_command.ok()) return screen_command.error();
  return {};
}

// The line-by-line output for a terminal that cannot redraw.
class Lines {
 public:
  explicit Lines(const RunView& view) : view_(view), is_reading_(view.reading().has_value()) {}

  void say(const RunView::Changes& changes) {
    // Events from before the start are not shown.
    const bool was_reading = std::exchange(is_reading_, view_.reading().has_value());
    if (!was_reading && !is_reading_) {
      const Json events = view_.events(changes.events);
      for (const Json& event : events) say(event_line(event));
    }
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
  bool is_reading_;
  NonBlockingWriter out_{STDOUT_FILENO};
  std::optional<double> said_at_s_;
  std::string last_;
};

Result<void> log_until_end(RunView& view) {
  Person person;
  const auto no_screen = [] {};
  Lines lines(view);
  lines.say_state();
  RunView::Changes changes{.has_more = view.reading().has_value()};
  while (view.is_under_way() || changes.has_more) {
    MOTLEY_ASSIGN(const ScreenCommand screen_command,
                  command_within(pause_s(changes), person, no_screen));
    if (screen_command == ScreenCommand::kLeaveScreen) return {};
    changes = view.poll(unix_time_s());
    lines.say(changes);
  }
  lines.say_state();
  return {};
}

}  // namespace

Result<void> watch_in_terminal(const std::filesystem::path& run,
                               const TerminalWatchOptions& options) {
  MOTLEY_ASSIGN(RunView view, RunView::begin(run, unix_time_s()));
  if (!is_live_terminal(stdout, options.term)) return log_until_end(view);
  const bool in_colour = options.no_color == nullptr || *options.no_color == '\0';
  return redraw_until_left(view, in_colour);
}

}  // namespace motley

// What is sent, as it happens, to every page that looks on: server-sent events as browsers read
// them. Here is the one place that looks at the run: once a tick for all pages, not at all where
// nobody looks on, and where somebody asks for a single answer. What takes long to read is read in
// pieces, by go_on(), and told at the next tick.
//
// A page that comes gets description, state, events and the steps so far; one that comes back says
// the last step it has (Last-Event-ID), and gets those after it. `steps` carries the columns of
// history(), and "whole": true where they replace all that the page has.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "watch/http/run_source.h"

namespace motley {

// One page's end of the feed. What it cannot take it drops, with itself.
class LiveStream {
 public:
  virtual ~LiveStream() = default;
  virtual void send(std::shared_ptr<const std::string> text) = 0;
  // Now and then; ends what has not taken anything for too long.
  virtual void check(SteadyClock::time_point now) = 0;
};

class LiveFeed {
 public:
  // `source` must outlive the feed.
  LiveFeed(RunSource& source, double heartbeat_s)
      : source_(source), heartbeat_s_(heartbeat_s), heartbeat_(Deadline::after_s(heartbeat_s)) {}

  // `last_event_id` as the browser sent it; anything but a step's number is as good as none.
  void add(const std::shared_ptr<LiveStream>& stream, std::string_view last_event_id);

  void tick();

  // Before a single answer: looks, unless that was done just now.
  void refresh();

  // Whether the last look, or that of who opened the run, has left something to read.
  [[nodiscard]] bool has_more() const { return has_more_; }

  // Reads a piece of it. Between two calls requests are answered.
  void go_on() { gather(); }

  [[nodiscard]] std::size_t streams() const { return streams_.size(); }

 private:
  // Looks, and keeps what it finds until it is told.
  void gather();
  // Looks, and sends what is new to those who are here. Whether there was anything to send.
  bool look();
  void send_all(std::string text);
  [[nodiscard]] std::string news(const RunChanges& changes);
  // Empty where the source cannot tell.
  [[nodiscard]] std::string steps_message(std::int64_t after_step, std::int64_t last_step);

  RunSource& source_;
  std::vector<std::weak_ptr<LiveStream>> streams_;
  RunChanges untold_;
  bool has_more_ = true;
  std::int64_t last_step_ = 0;  // every stream has the steps to here
  double heartbeat_s_;
  Deadline heartbeat_;
  Deadline fresh_ = Deadline::after_s(0.0);  // until then a look finds nothing that matters
};

// "event: NAME\ndata: …\n\n", with an id where one is given. `data` has no line ends of its own, or
// they become lines of data.
[[nodiscard]] std::string live_message(std::string_view event,
                                       std::string_view data,
                                       std::string_view id = {});

}  // namespace motley

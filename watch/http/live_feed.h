// The live feed: server-sent events to all open pages. It polls the run: once a tick for all pages,
// not at all without an open page, and before a single response. Long reads are done in pieces by
// go_on() and sent at the next tick.
//
// A new page gets description, state, events and all steps so far. A page that reconnects sends the
// last step it has (Last-Event-ID) and gets the steps after it. `steps` carries the columns of
// history(), and "whole": true if they replace all steps of the page.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "watch/http/run_source.h"

namespace motley {

// The sender's end of one page's stream. On overflow it closes itself.
class LiveStream {
 public:
  virtual ~LiveStream() = default;
  virtual void send(std::shared_ptr<const std::string> text) = 0;
  // Called periodically; closes a stream whose client has not received anything for too long.
  virtual void check(SteadyClock::time_point now) = 0;
};

class LiveFeed {
 public:
  // `source` must outlive the feed.
  LiveFeed(RunSource& source, double heartbeat_s)
      : source_(source), heartbeat_s_(heartbeat_s), heartbeat_(Deadline::after_s(heartbeat_s)) {}

  // `last_event_id`: as the browser sent it; anything but a step number counts as none.
  void add(const std::shared_ptr<LiveStream>& stream, std::string_view last_event_id);

  void tick();

  // Before a single response: polls the run unless it was polled just now.
  void refresh();

  // Whether unread data remained after the last poll or after opening the run.
  [[nodiscard]] bool has_more() const { return has_more_; }

  // Reads one piece. Requests are handled between two calls.
  void go_on() { gather(); }

  [[nodiscard]] std::size_t streams() const { return streams_.size(); }

 private:
  // Polls the run and accumulates the changes until they are sent.
  void gather();
  // Polls the run and sends the changes to all streams. Returns whether anything was sent.
  bool look();
  void send_all(std::string text);
  [[nodiscard]] std::string news(const RunChanges& changes);
  // Empty if the source returns an error.
  [[nodiscard]] std::string steps_message(std::int64_t after_step, std::int64_t last_step);

  RunSource& source_;
  std::vector<std::weak_ptr<LiveStream>> streams_;
  RunChanges pending_changes_;
  bool has_more_ = true;
  std::int64_t last_step_ = 0;  // every stream has the steps up to this one
  double heartbeat_s_;
  Deadline heartbeat_;
  Deadline fresh_ = Deadline::after_s(0.0);  // the last poll is recent enough until then
};

// "event: NAME\ndata: …\n\n", with an id if one is given. Line ends in `data` start further data
// lines.
[[nodiscard]] std::string live_message(std::string_view event,
                                       std::string_view data,
                                       std::string_view id = {});

}  // namespace motley

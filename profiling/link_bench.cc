#include "profiling/link_bench.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/median.h"

namespace motley {
namespace {

constexpr Tag kToServer = 1;
constexpr Tag kToClient = 2;
constexpr Tag kBothWays = 3;
constexpr double kMessageWait_s = 30;
constexpr std::size_t kSmallBytes = 8;
constexpr int kSmallMax = 500;
constexpr int kSmallMin = 20;
// The first size takes seconds on a slow link; on a fast one the sizes grow until a message takes
// long enough.
constexpr std::size_t kLargeFirst = std::size_t{1} << 16;
constexpr std::size_t kLargeMax = std::size_t{8} << 20;
constexpr int kLargeRunsMin = 5;
constexpr int kLargeRunsMax = 200;
constexpr double kLargeLong_s = 0.05;  // longer than buffers on the path can hide

Buffer message_of(std::size_t bytes) {
  Buffer buffer(bytes);
  buffer.set_payload_bytes(bytes);
  std::memset(buffer.message().data(), 0, buffer.message().size());
  return buffer;
}

// Sends the message, gets its buffer back, and waits for the answer; returns the duration in
// seconds.
Result<double> round_trip(Transport& transport, Rank peer, Buffer& message) {
  Pending answer = transport.recv(peer, kToClient, Buffer(kSmallBytes));
  const double start_s = now_s();
  Pending sent = transport.send(peer, kToServer, std::move(message));
  MOTLEY_TRY(answer.wait(Deadline::after_s(kMessageWait_s), "the answer of the probe's other end"));
  const double took_s = now_s() - start_s;
  MOTLEY_ASSIGN(message,
                sent.wait(Deadline::after_s(kMessageWait_s), "the probe's message to be sent"));
  return took_s;
}

Result<void> end_serving(Transport& transport, Rank peer) {
  Buffer last = message_of(0);
  MOTLEY_ASSIGN([[maybe_unused]] const double took_s, round_trip(transport, peer, last));
  return {};
}

// The quantile `share` of the values. REQUIRES: values is not empty.
double quantile(std::vector<double> values, double share) {
  const auto last = static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * last + 0.5);
  std::ranges::nth_element(values, at);
  return *at;
}

Result<void> measure_latency(Transport& transport, Rank peer, double seconds, LinkSample& sample) {
  std::vector<double> times_s;
  Buffer message = message_of(kSmallBytes);
  const Deadline until = Deadline::after_s(seconds);
  for (int run = -1; run < kSmallMin || (run < kSmallMax && !until.passed()); ++run) {
    MOTLEY_ASSIGN(const double took_s, round_trip(transport, peer, message));
    if (run >= 0) times_s.push_back(took_s);  // the first one opens connections
  }
  const double median_s = median(times_s);
  sample.latency_s = median_s / 2;
  sample.jitter_p95_s = (quantile(std::move(times_s), 0.95) - median_s) / 2;
  return end_serving(transport, peer);
}

// Increases the size until a message takes long enough that neither latency nor buffers on the path
// dominate.
Result<std::size_t> find_large_size(Transport& transport, Rank peer) {
  std::size_t bytes = kLargeFirst;
  for (; bytes < kLargeMax; bytes *= 2) {
    Buffer message = message_of(bytes);
    MOTLEY_ASSIGN(const double took_s, round_trip(transport, peer, message));
    if (took_s >= kLargeLong_s) break;
  }
  return bytes;
}

Result<void> measure_bandwidth(Transport& transport,
                               Rank peer,
                               double seconds,
                               LinkSample& sample) {
  const Deadline until = Deadline::after_s(seconds);
  const double start_cpu_s = process_cpu_s();
  MOTLEY_ASSIGN(const std::size_t bytes, find_large_size(transport, peer));
  double sent_bytes = 2 * static_cast<double>(bytes);  // includes all sizes up to this one
  Buffer message = message_of(bytes);
  std::vector<double> times_s;
  for (int run = 0; run < kLargeRunsMin || (run < kLargeRunsMax && !until.passed()); ++run) {
    MOTLEY_ASSIGN(const double took_s, round_trip(transport, peer, message));
    times_s.push_back(took_s);
    sent_bytes += static_cast<double>(bytes);
  }
  sample.send_cpu_s_per_byte = (process_cpu_s() - start_cpu_s) / sent_bytes;
  const double median_s = median(std::move(times_s));
  // Subtracts the answer's time and the message's own latency.
  const double moving_s = std::max(median_s - 2 * sample.latency_s, median_s / 2);
  sample.bandwidth_bytes_per_s = static_cast<double>(bytes) / moving_s;
  return end_serving(transport, peer);
}

// Agrees with the other end on whether there is another round.
Result<bool> begin_round(Transport& transport, Rank peer, bool is_leader, bool wants_more) {
  Pending word = transport.recv(peer, is_leader ? kToClient : kToServer, Buffer(kSmallBytes));
  if (is_leader) {
    Pending asked = transport.send(peer, kToServer, message_of(wants_more ? kSmallBytes : 0));
    MOTLEY_TRY(
        asked.wait(Deadline::after_s(kMessageWait_s), "the probe's control message to be sent"));
  }
  MOTLEY_ASSIGN(const Buffer heard, word.wait(Deadline::after_s(kMessageWait_s),
                                              "the control message of the probe's other end"));
  if (is_leader) return wants_more;
  const bool goes_on = heard.payload_bytes() > 0;
  Pending answered = transport.send(peer, kToClient, message_of(kSmallBytes));
  MOTLEY_TRY(answered.wait(Deadline::after_s(kMessageWait_s), "the probe's answer to be sent"));
  return goes_on;
}

// Answers until an empty message; returns the received bytes.
Result<double> answer_all(Transport& transport, Rank peer) {
  double bytes = 0;
  Pending message = transport.recv(peer, kToServer, Buffer(kLargeMax));
  for (bool more = true; more;) {
    MOTLEY_ASSIGN(Buffer came,
                  message.wait(Deadline::after_s(kMessageWait_s), "the probe's next message"));
    more = came.payload_bytes() > 0;
    bytes += static_cast<double>(came.payload_bytes());
    // Posted before the answer, so that the next message finds its buffer.
    if (more) message = transport.recv(peer, kToServer, std::move(came));
    Pending answer = transport.send(peer, kToClient, message_of(kSmallBytes));
    MOTLEY_TRY(answer.wait(Deadline::after_s(kMessageWait_s), "the probe's answer to be sent"));
  }
  return bytes;
}

}  // namespace

Result<LinkSample> measure_link(Transport& transport, Rank peer, double seconds) {
  LinkSample sample;
  MOTLEY_TRY(measure_latency(transport, peer, seconds / 4, sample));
  MOTLEY_TRY(measure_bandwidth(transport, peer, seconds * 3 / 4, sample));
  return sample;
}

Result<BidirectionalSample> measure_bidirectional(
    Transport& transport, Rank peer, bool is_leader, const LinkSample& alone, double seconds) {
  const double wanted_bytes = 2 * kLargeLong_s * alone.bandwidth_bytes_per_s;
  const auto bytes = static_cast<std::size_t>(
      std::clamp(wanted_bytes, static_cast<double>(kLargeFirst), static_cast<double>(kLargeMax)));
  const double alone_s = alone.latency_s + static_cast<double>(bytes) / alone.bandwidth_bytes_per_s;
  const Deadline until = Deadline::after_s(seconds);
  std::vector<double> times_s;
  Buffer own = message_of(bytes);
  Buffer receive_buffer(kLargeMax);
  while (true) {
    const bool wants_more = std::ssize(times_s) < kLargeRunsMin || !until.passed();
    Pending theirs = transport.recv(peer, kBothWays, std::move(receive_buffer));
    MOTLEY_ASSIGN(const bool goes_on, begin_round(transport, peer, is_leader, wants_more));
    const double start_s = now_s();
    Pending sent = transport.send(peer, kBothWays, goes_on ? std::move(own) : message_of(0));
    MOTLEY_ASSIGN(receive_buffer, theirs.wait(Deadline::after_s(kMessageWait_s),
                                              "the message of the probe's other end"));
    times_s.push_back(now_s() - start_s);
    MOTLEY_ASSIGN(own,
                  sent.wait(Deadline::after_s(kMessageWait_s), "the probe's message to be sent"));
    if (!goes_on) break;
  }
  times_s.pop_back();  // of the final, empty messages
  return BidirectionalSample{alone_s, median(std::move(times_s))};
}

Result<double> serve_link(Transport& transport, Rank peer) {
  MOTLEY_ASSIGN([[maybe_unused]] const double small_bytes, answer_all(transport, peer));
  const double start_cpu_s = process_cpu_s();
  MOTLEY_ASSIGN(const double bytes, answer_all(transport, peer));
  return bytes > 0 ? (process_cpu_s() - start_cpu_s) / bytes : 0;
}

}  // namespace motley

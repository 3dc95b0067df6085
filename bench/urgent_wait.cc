#include "bench/urgent_wait.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace motley {
namespace {

constexpr double kStallTimeout_s = 60;
constexpr double kBetweenValues_s = 0.05;
constexpr std::size_t kValueBytes = std::size_t{64} << 10;
constexpr std::size_t kBucketBytes = std::size_t{256} << 10;
constexpr std::size_t kBuckets = 12;
constexpr std::chrono::microseconds kLook{100};

// Separate tags for each way: an unused posted receive would take the next way's messages.
struct Tags {
  explicit Tags(ValueWay way) {
    const Tag first = 32 + 4 * static_cast<Tag>(way);
    bucket = kBulkTag | first;
    value = (way == ValueWay::kAsBulk ? kBulkTag : 0) | (first + 1);
    answer = first + 2;
    end = kBulkTag | (first + 3);  // after all buckets
  }

  Tag bucket = 0;
  Tag value = 0;
  Tag answer = 0;
  Tag end = 0;
};

Buffer zeros(std::size_t bytes) {
  Buffer buffer(bytes);
  buffer.set_payload_bytes(bytes);
  std::memset(buffer.message().data(), 0, buffer.message().size());
  return buffer;
}

}  // namespace

Result<UrgentWait> measure_urgent_wait(Transport& transport,
                                       Rank peer,
                                       double seconds,
                                       ValueWay way) {
  const Tags tags(way);
  std::deque<Pending> buckets;
  std::vector<Pending> values;  // their buffers are not reused
  std::optional<Pending> answer;
  std::vector<double> waits;
  double bulk_bytes = 0;
  double sent_s = 0;
  const double start_s = now_s();
  const auto is_over = [&] { return now_s() - start_s >= seconds; };
  while (!is_over() || answer) {
    while (way != ValueWay::kAlone && !is_over() && buckets.size() < kBuckets) {
      buckets.push_back(transport.send(peer, tags.bucket, zeros(kBucketBytes)));
    }
    while (!buckets.empty() && buckets.front().done()) {
      MOTLEY_TRY(buckets.front().wait(Deadline::after_s(0), "a bucket to leave"));
      buckets.pop_front();
      bulk_bytes += kBucketBytes;
    }
    if (answer && answer->done()) {
      MOTLEY_TRY(answer->wait(Deadline::after_s(0), "an answer"));
      answer.reset();
      waits.push_back(now_s() - sent_s);
    }
    if (!answer && !is_over() && now_s() - sent_s >= kBetweenValues_s) {
      sent_s = now_s();
      answer = transport.recv(peer, tags.answer, Buffer(0));
      values.push_back(transport.send(peer, tags.value, zeros(kValueBytes)));
    }
    if (now_s() - start_s > seconds + kStallTimeout_s) {
      return Error{ErrorCode::kPeer, "no answer came to a value", "", ""};
    }
    std::this_thread::sleep_for(kLook);
  }
  const double bulk_bytes_per_s = bulk_bytes / (now_s() - start_s);
  Pending over = transport.recv(peer, tags.answer, Buffer(0));
  Pending end = transport.send(peer, tags.end, zeros(0));
  for (Pending& bucket : buckets) {
    MOTLEY_TRY(bucket.wait(Deadline::after_s(kStallTimeout_s), "a bucket to leave"));
  }
  MOTLEY_TRY(end.wait(Deadline::after_s(kStallTimeout_s), "the end to leave"));
  MOTLEY_TRY(over.wait(Deadline::after_s(kStallTimeout_s), "the answer to the end"));
  if (waits.empty()) return Error{ErrorCode::kPeer, "no value was answered", "", ""};
  std::ranges::sort(waits);
  return UrgentWait{waits[waits.size() / 2], waits.back(), bulk_bytes_per_s};
}

Result<void> serve_urgent_wait(Transport& transport, Rank peer, ValueWay way) {
  const Tags tags(way);
  std::deque<Pending> buckets;
  std::vector<Pending> answers;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    buckets.push_back(transport.recv(peer, tags.bucket, Buffer(kBucketBytes)));
  }
  Pending value = transport.recv(peer, tags.value, Buffer(kValueBytes));
  Pending end = transport.recv(peer, tags.end, Buffer(0));
  while (!end.done()) {
    if (value.done()) {
      MOTLEY_TRY(value.wait(Deadline::after_s(0), "a value"));
      answers.push_back(transport.send(peer, tags.answer, zeros(0)));
      value = transport.recv(peer, tags.value, Buffer(kValueBytes));
    }
    while (buckets.front().done()) {
      MOTLEY_ASSIGN(Buffer came, buckets.front().wait(Deadline::after_s(0), "a bucket"));
      buckets.pop_front();
      buckets.push_back(transport.recv(peer, tags.bucket, std::move(came)));
    }
    std::this_thread::sleep_for(kLook);
  }
  MOTLEY_TRY(end.wait(Deadline::after_s(0), "the end"));
  Pending over = transport.send(peer, tags.answer, zeros(0));
  MOTLEY_TRY(over.wait(Deadline::after_s(kStallTimeout_s), "the answer to leave"));
  return {};
}

}  // namespace motley

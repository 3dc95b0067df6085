#include "pipeline/execute/value_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "compression/codec/fixed_size_codec.h"

namespace motley {
namespace {

struct MessageParts {
  std::span<const std::byte> coded;
  std::span<const std::byte> exact;
};

// Splits a peer's payload. The codec checks the size of the coded part.
Result<MessageParts> parts_of(std::span<const std::byte> payload, const BoundaryMessage& message) {
  if (payload.size() < message.exact_bytes) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} message of {} bytes, fewer than its {} of exact values",
                             message.codec, payload.size(), message.exact_bytes),
                 "the two ends use different codecs or shapes", "start both from one plan"};
  }
  const std::size_t coded_bytes = payload.size() - message.exact_bytes;
  return MessageParts{payload.first(coded_bytes), payload.subspan(coded_bytes)};
}

}  // namespace

ValueExchange::ValueExchange(Rank self,
                             FrameLink& link,
                             StageCompute& compute,
                             std::vector<std::unique_ptr<const Codec>> codecs,
                             StallTimeout stall_timeout,
                             bool overlaps_codecs)
    : self_(self),
      link_(link),
      compute_(compute),
      codecs_(std::move(codecs)),
      stall_timeout_(stall_timeout),
      overlaps_codecs_(overlaps_codecs),
      sender_(link, stall_timeout, overlaps_codecs),
      receiver_(overlaps_codecs) {}

void ValueExchange::begin(const Schedule& schedule, const BatchPosition& position) {
  rules_.emplace(schedule.owners);
  step_ = position.step;
  unsent_.clear();
  unsent_targets_.clear();
  times_ = {};
}

void ValueExchange::post(const Action& action) {
  const auto value = rules_->posted_by(action);
  MOTLEY_CHECK(value.has_value(), "{} posts nothing", to_text(action));
  if (value->kind == ValueKind::kTargets) {
    post_targets(*value);
  } else {
    post_boundary(*value);
  }
}

void ValueExchange::post_targets(const Value& value) {
  const std::span<std::int32_t> targets = compute_.targets_buffer(value.micro);
  expect(value, targets.size_bytes(),
         [targets, micro = value.micro](std::span<const std::byte> payload) -> Result<void> {
           if (payload.size() != targets.size_bytes()) {
             return Error{ErrorCode::kCorrupt,
                          fmt::format("targets of micro-batch {} have {} bytes instead of {}",
                                      micro.value, payload.size(), targets.size_bytes()),
                          "the peer has another configuration",
                          "start all stages from one launcher"};
           }
           std::memcpy(targets.data(), payload.data(), payload.size());
           return {};
         });
}

void ValueExchange::post_boundary(const Value& value) {
  const Codec& codec = codec_of(value);
  const BoundaryMessage message = message_of(value);
  if (const auto place = compute_.message_buffer(value, message)) {
    expect(value, message.bytes_max,
           [place = *place, message](std::span<const std::byte> payload) -> Result<void> {
             MOTLEY_ASSIGN(const MessageParts parts, parts_of(payload, message));
             MOTLEY_TRY(check_message_bytes(message.codec.c_str(), parts.coded.size(),
                                            place.size() - message.exact_bytes, message.floats));
             std::ranges::copy(payload, place.begin());
             return {};
           });
    return;
  }
  // The receive buffer, which is allocated when the message arrives.
  std::function<BoundaryBuffer()> receive_buffer = [this, value] {
    return compute_.receive_buffer(value);
  };
  // Only the compute thread may request it, so an asynchronous decoder gets it now.
  if (overlaps_codecs_) receive_buffer = [values = receive_buffer()] { return values; };
  expect(value, message.bytes_max,
         [&codec, message, receive_buffer = std::move(receive_buffer)](
             std::span<const std::byte> payload) -> Result<void> {
           MOTLEY_ASSIGN(const MessageParts parts, parts_of(payload, message));
           const BoundaryBuffer place = receive_buffer();
           MOTLEY_CHECK(place.exact.size() == parts.exact.size(), "buffer: {} of {} bytes",
                        place.exact.size(), parts.exact.size());
           std::ranges::copy(parts.exact, place.exact.begin());
           return codec.decode(parts.coded, place.floats);
         });
}

void ValueExchange::expect(const Value& value, std::size_t bytes_max, FrameReceiver::Read read) {
  receiver_.expect(ActionRules::post_of(value),
                   link_.recv(rules_->maker(value), frame_of(value), buffers_.take(bytes_max)),
                   std::move(read));
}

Result<void> ValueExchange::receive(const Action& action) {
  for (const Value& value : rules_->needs(action)) {
    if (!rules_->crosses(value)) continue;
    MOTLEY_ASSIGN(FrameReceiver::Received received,
                  receiver_.wait(ActionRules::post_of(value), stall_timeout_.deadline()));
    times_.wait_s += received.wait_s;
    times_.codec_s += received.read_s;
    buffers_.give(std::move(received.buffer));
  }
  return {};
}

void ValueExchange::take_targets(const Action& load, std::span<const std::int32_t> targets) {
  for (const Value& value : rules_->makes(load)) {
    if (value.kind != ValueKind::kTargets || !rules_->crosses(value)) continue;
    // A copy: the next load may overwrite them before they are sent.
    unsent_targets_[value].assign(targets.begin(), targets.end());
  }
}

void ValueExchange::take(const Action& action, OwnedBoundary made) {
  for (const Value& value : rules_->makes(action)) {
    if (value.kind != ValueKind::kActivation && value.kind != ValueKind::kGradient) continue;
    if (!rules_->crosses(value)) {
      compute_.hand_over_locally(value, std::move(made));
    } else if (auto message = compute_.message_to_host(made, message_of(value))) {
      unsent_[value] = std::move(*message);
    } else {
      unsent_[value] = compute_.to_host(std::move(made));
    }
    return;
  }
}

Result<void> ValueExchange::send(const Action& action) {
  const auto value = rules_->sent_by(action);
  MOTLEY_CHECK(value.has_value(), "{} sends nothing", to_text(action));
  const double start_s = now_s();
  MOTLEY_TRY(sender_.send(value->kind == ValueKind::kTargets ? targets_frame(*value)
                                                             : boundary_frame(*value)));
  times_.codec_s += now_s() - start_s;
  return {};
}

FrameSender::Frame ValueExchange::targets_frame(const Value& value) {
  auto kept = unsent_targets_.extract(value);
  MOTLEY_CHECK(!kept.empty(), "targets of micro-batch {} are missing", value.micro.value);
  const std::size_t bytes = std::span(kept.mapped()).size_bytes();
  return {rules_->user(value), frame_of(value), bytes,
          [targets = std::move(kept.mapped())](std::span<std::byte> send_buffer) {
            std::ranges::copy(std::as_bytes(std::span(targets)), send_buffer.begin());
            return send_buffer.size();
          }};
}

FrameSender::Frame ValueExchange::boundary_frame(const Value& value) {
  auto kept = unsent_.extract(value);
  const FrameId frame = frame_of(value);
  MOTLEY_CHECK(!kept.empty(), "{} is missing", to_words(frame));
  if (auto* const message = std::get_if<OwnedBytes>(&kept.mapped())) {
    const std::size_t bytes = message->values.size();
    return {rules_->user(value), frame, bytes,
            [frame, message = std::move(*message)](
                std::span<std::byte> send_buffer) -> Result<std::size_t> {
              MOTLEY_TRY(message.await(to_words(frame)));
              std::ranges::copy(message.values, send_buffer.begin());
              return message.values.size();
            }};
  }
  const Codec& codec = codec_of(value);
  auto made = std::get<OwnedBoundary>(std::move(kept.mapped()));
  const std::size_t bytes_max = codec.bytes_max(made.values.size()) + made.exact.size();
  return {rules_->user(value), frame, bytes_max,
          [&codec, frame,
           made = std::move(made)](std::span<std::byte> send_buffer) -> Result<std::size_t> {
            MOTLEY_TRY(made.await(to_words(frame)));
            const std::size_t coded_bytes = codec.encode(
                made.values, send_buffer.first(send_buffer.size() - made.exact.size()));
            std::ranges::copy(made.exact, send_buffer.subspan(coded_bytes).begin());
            return coded_bytes + made.exact.size();
          }};
}

Result<void> ValueExchange::finish() {
  MOTLEY_TRY(sender_.finish());
  MOTLEY_CHECK(receiver_.count() == 0, "{} receives were posted and not used", receiver_.count());
  return {};
}

FrameId ValueExchange::frame_of(const Value& value) const {
  const FrameKind kind = value.kind == ValueKind::kTargets      ? FrameKind::kTargets
                         : value.kind == ValueKind::kActivation ? FrameKind::kActivation
                                                                : FrameKind::kGradient;
  return {kind, rules_->maker_chunk(value), value.micro, step_};
}

BoundaryMessage ValueExchange::message_of(const Value& value) const {
  const Codec& codec = codec_of(value);
  const BoundarySize there = compute_.boundary_size(rules_->boundary(value));
  const BoundarySize size = value.kind == ValueKind::kGradient ? there.gradient() : there;
  const auto floats = static_cast<std::size_t>(size.floats);
  const auto exact_bytes = static_cast<std::size_t>(size.exact_bytes);
  return {codec.name(), floats, exact_bytes, codec.bytes_max(floats) + exact_bytes};
}

const Codec& ValueExchange::codec_of(const Value& value) const {
  return *codecs_[rules_->boundary(value).index()];
}

}  // namespace motley

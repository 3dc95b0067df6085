#include "comm/transport/buffer.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

Buffer::Buffer(std::size_t payload_bytes_max)
    : bytes_(static_cast<std::byte*>(
          ::operator new(kFrameHeaderBytes + payload_bytes_max, kAlignment))),
      payload_bytes_max_(payload_bytes_max) {}

Buffer::Buffer(Buffer&& other) noexcept
    : bytes_(std::move(other.bytes_)),
      payload_bytes_max_(std::exchange(other.payload_bytes_max_, 0)),
      payload_bytes_(std::exchange(other.payload_bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  bytes_ = std::move(other.bytes_);
  payload_bytes_max_ = std::exchange(other.payload_bytes_max_, 0);
  payload_bytes_ = std::exchange(other.payload_bytes_, 0);
  return *this;
}

Buffer::~Buffer() = default;

void Buffer::Free::operator()(std::byte* bytes) const {
  ::operator delete(bytes, kAlignment);
}

void Buffer::set_payload_bytes(std::size_t bytes) {
  MOTLEY_CHECK(bytes <= payload_bytes_max_, "{} bytes in a buffer of {}", bytes,
               payload_bytes_max_);
  payload_bytes_ = bytes;
}

std::span<std::byte> Buffer::payload() {
  return payload_space().first(payload_bytes_);
}

std::span<const std::byte> Buffer::payload() const {
  return bytes_.get() == nullptr
             ? std::span<const std::byte>()
             : std::span<const std::byte>(bytes_.get() + kFrameHeaderBytes, payload_bytes_);
}

std::span<std::byte> Buffer::payload_space() {
  return bytes_.get() == nullptr ? std::span<std::byte>()
                                 : std::span(bytes_.get() + kFrameHeaderBytes, payload_bytes_max_);
}

std::span<std::byte> Buffer::header() {
  return message_space().first(kFrameHeaderBytes);
}

std::span<const std::byte> Buffer::header() const {
  MOTLEY_CHECK(bytes_.get() != nullptr, "a buffer without memory has no header");
  return {bytes_.get(), kFrameHeaderBytes};
}

std::span<std::byte> Buffer::message() {
  return message_space().first(kFrameHeaderBytes + payload_bytes_);
}

std::span<std::byte> Buffer::message_space() {
  MOTLEY_CHECK(bytes_.get() != nullptr, "a buffer without memory cannot be sent");
  return {bytes_.get(), kFrameHeaderBytes + payload_bytes_max_};
}

Buffer buffer_with(std::span<const std::byte> payload) {
  Buffer buffer(payload.size());
  buffer.set_payload_bytes(payload.size());
  std::ranges::copy(payload, buffer.payload().begin());
  return buffer;
}

}  // namespace motley

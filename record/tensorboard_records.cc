#include "record/tensorboard_records.h"

#include <bit>
#include <string_view>
#include <type_traits>

#include <boost/crc.hpp>

namespace motley {
namespace {

enum class FieldKind : std::uint64_t { kVarint = 0, kEightBytes = 1, kBytes = 2, kFourBytes = 5 };

template <class Unsigned>
void add_little_endian(std::string& bytes, Unsigned value) {
  static_assert(std::is_unsigned_v<Unsigned>);
  for (std::size_t i = 0; i < sizeof(value); ++i) {
    bytes += static_cast<char>(static_cast<unsigned char>(value >> (8 * i) & 0xFF));
  }
}

void add_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    bytes += static_cast<char>(static_cast<unsigned char>(value | 0x80));
  }
  bytes += static_cast<char>(static_cast<unsigned char>(value));
}

void add_key(std::string& bytes, std::uint64_t number, FieldKind kind) {
  add_varint(bytes, number << 3 | static_cast<std::uint64_t>(kind));
}

void add_bytes(std::string& bytes, std::uint64_t number, std::string_view value) {
  add_key(bytes, number, FieldKind::kBytes);
  add_varint(bytes, value.size());
  bytes += value;
}

void add_double(std::string& bytes, std::uint64_t number, double value) {
  add_key(bytes, number, FieldKind::kEightBytes);
  add_little_endian(bytes, std::bit_cast<std::uint64_t>(value));
}

void add_float(std::string& bytes, std::uint64_t number, float value) {
  add_key(bytes, number, FieldKind::kFourBytes);
  add_little_endian(bytes, std::bit_cast<std::uint32_t>(value));
}

// A negative number is encoded in 64 bits.
void add_integer(std::string& bytes, std::uint64_t number, std::int64_t value) {
  add_key(bytes, number, FieldKind::kVarint);
  add_varint(bytes, static_cast<std::uint64_t>(value));
}

std::uint32_t masked_crc(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  constexpr std::uint32_t kMask = 0xa282ead8;
  return std::rotr(static_cast<std::uint32_t>(crc.checksum()), 15) + kMask;
}

std::string record(const std::string& data) {
  std::string bytes;
  add_little_endian(bytes, static_cast<std::uint64_t>(data.size()));
  add_little_endian(bytes, masked_crc(bytes));
  bytes += data;
  add_little_endian(bytes, masked_crc(data));
  return bytes;
}

std::string event_at(double wall_s, std::int64_t step) {
  std::string event;
  add_double(event, 1, wall_s);
  if (step != 0) add_integer(event, 2, step);
  return event;
}

}  // namespace

std::string version_record(double wall_s) {
  std::string event = event_at(wall_s, 0);
  add_bytes(event, 3, "brain.Event:2");
  return record(event);
}

std::string start_record(double wall_s, std::int64_t first_step) {
  constexpr std::int64_t kStart = 1;
  std::string session_log;
  add_integer(session_log, 1, kStart);
  std::string event = event_at(wall_s, first_step);
  add_bytes(event, 7, session_log);
  return record(event);
}

std::string scalars_record(double wall_s, std::int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    add_bytes(value, 1, scalar.tag);
    add_float(value, 2, static_cast<float>(scalar.value));
    add_bytes(summary, 1, value);
  }
  std::string event = event_at(wall_s, step);
  add_bytes(event, 5, summary);
  return record(event);
}

}  // namespace motley

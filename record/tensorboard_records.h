// The records of a TensorBoard event file, as bytes. Pure.
//
// A record is, all numbers little-endian:
//   u64 length of the data | u32 masked CRC of those 8 bytes | data | u32 masked CRC of the data
// CRC is CRC-32C; masked is ((crc >> 15) | (crc << 17)) + 0xa282ead8.
//
// The data is a protocol buffer Event of TensorFlow's event.proto, of which these fields are used
// (number: type); the first record of a file has a file_version and nothing else:
//   Event       1 wall_time: double   2 step: int64   3 file_version: string   5 summary: Summary
//               7 session_log: SessionLog
//   Summary     1 value: repeated Value
//   Value       1 tag: string   2 simple_value: float
//   SessionLog  1 status: enum, START = 1
// In a protocol buffer a field is a varint of (number << 3 | kind), then its value: kind 0 is a
// varint, 1 is 8 bytes, 5 is 4 bytes, 2 is a varint of the length and so many bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace motley {

struct Scalar {
  std::string tag;  // "train/loss"
  double value = 0;
};

// wall_s: seconds since 1970 UTC.
[[nodiscard]] std::string version_record(double wall_s);
// Makes TensorBoard discard earlier records of `first_step` and later steps.
[[nodiscard]] std::string start_record(double wall_s, std::int64_t first_step);
[[nodiscard]] std::string scalars_record(double wall_s,
                                         std::int64_t step,
                                         const std::vector<Scalar>& scalars);

}  // namespace motley

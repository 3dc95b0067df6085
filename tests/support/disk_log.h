// The log of tests/support/disk_recorder.cc: the file operations of programs in one folder, in
// execution order.
//
// Each record is one write to a file opened with O_APPEND: a RecordHead, then the path, the other
// text and the bytes. Paths are relative to the folder; "" is the folder itself.
#pragma once

#include <cstdint>
#include <string>

namespace motley::testing {

enum class DiskAction : std::uint32_t {
  kMakeFolder,
  kMakeFile,
  kResize,  // a file, to `offset` bytes
  kWrite,   // `bytes` at `offset`
  kSync,    // a file or a folder
  kRename,  // `path` becomes `other`
  kLink,    // the file `path` gets the additional name `other`
  kRemove,  // a file or a folder
  kMark,    // no disk operation: a program's progress marker, in `other`
};

struct DiskOperation {
  DiskAction action;
  std::string path;
  std::string other = {};
  std::uint64_t offset = 0;
  std::string bytes = {};
};

struct RecordHead {
  DiskAction action;
  std::uint32_t path_bytes;
  std::uint32_t other_bytes;
  std::uint32_t data_bytes;
  std::uint64_t offset;
};

inline std::string format_record(const DiskOperation& operation) {
  const RecordHead head{.action = operation.action,
                        .path_bytes = static_cast<std::uint32_t>(operation.path.size()),
                        .other_bytes = static_cast<std::uint32_t>(operation.other.size()),
                        .data_bytes = static_cast<std::uint32_t>(operation.bytes.size()),
                        .offset = operation.offset};
  std::string record(reinterpret_cast<const char*>(&head), sizeof head);
  return record + operation.path + operation.other + operation.bytes;
}

}  // namespace motley::testing

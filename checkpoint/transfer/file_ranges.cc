#include "checkpoint/transfer/file_ranges.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/manifest.h"
#include "checkpoint/safetensors_header.h"

namespace motley {
namespace {

// The first name of `names` that is not in `others`, or "".
template <class Names, class Others>
std::string first_beyond(const Names& names, const Others& others) {
  for (const auto& [name, value] : names) {
    if (!others.contains(name)) return name;
  }
  return "";
}

}  // namespace

FileRange whole_file(const FileOrder& order) {
  return {0, order.file.bytes, order.file.hash, ""};
}

Result<std::vector<FileRange>> ordered_tensors(const FileOrder& order,
                                               std::string_view head,
                                               const std::string& source) {
  MOTLEY_ASSIGN(const SafetensorsHeader header,
                parse_safetensors_header(head.substr(kSafetensorsLengthBytes),
                                         order.file.bytes - head.size(), source));
  const auto& hashes = order.file.tensor_hashes;
  if (const std::string name = first_beyond(header.entries, hashes); !name.empty()) {
    return damaged_checkpoint(source,
                              fmt::format("the manifest lacks its tensor '{}'", excerpt(name)));
  }
  if (const std::string name = first_beyond(hashes, header.entries); !name.empty()) {
    return damaged_checkpoint(source,
                              fmt::format("it lacks tensor '{}' of the manifest", excerpt(name)));
  }
  std::vector<FileRange> ranges;
  for (const std::string& name : *order.tensors) {
    const auto found = header.entries.find(name);
    if (found == header.entries.end()) {
      return damaged_checkpoint(source, fmt::format("it lacks tensor '{}'", excerpt(name)));
    }
    const SafetensorsFile::Entry& entry = found->second;
    ranges.push_back({head.size() + entry.begin, entry.end - entry.begin, hashes.at(name), name});
  }
  std::ranges::sort(ranges, {}, [](const FileRange& range) {
    return std::pair(range.offset, range.bytes);  // an empty tensor comes before the next one
  });
  return ranges;
}

}  // namespace motley

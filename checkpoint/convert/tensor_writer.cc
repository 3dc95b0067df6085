#include "checkpoint/convert/tensor_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>

#include "base/check.h"
#include "checkpoint/safetensors_header.h"

namespace motley {
namespace {

TensorOutline outline_of(const NewTensor& tensor, FloatFormat format) {
  return {tensor.name,
          tensor.bytes ? tensor.dtype : safetensors_dtype(tensor.format.value_or(format)),
          tensor.shape};
}

Error beyond(const NewTensor& tensor, FloatFormat format, std::uint64_t place, float value) {
  return {ErrorCode::kConfig,
          fmt::format("tensor '{}' cannot be written as {}", tensor.name, torch_dtype(format)),
          fmt::format("its value {} is {}; the largest of that dtype is {}", place, value,
                      largest_number(format)),
          "use fp32 or bf16, or --saturate to write the largest value instead"};
}

Result<void> write_tensor(SafetensorsWriter& writer,
                          const NewTensor& tensor,
                          const FormatRule& rule,
                          WorkObserver& watch) {
  if (tensor.bytes) {
    MOTLEY_ASSIGN(const std::vector<std::byte> whole, tensor.bytes());
    MOTLEY_TRY(writer.append(whole));
    return watch.advance(whole.size());
  }
  const FloatFormat format = tensor.format.value_or(rule.format);
  const std::uint64_t count = value_count(outline_of(tensor, format));
  const auto stream = tensor.open();
  std::vector<float> values;
  std::vector<std::byte> bytes;
  for (std::uint64_t done = 0; done < count; done += values.size()) {
    values.resize(std::min<std::uint64_t>(kPieceValues, count - done));
    MOTLEY_TRY(stream->next(values));
    const auto fault = write_numbers(values, format, bytes);
    if (fault && !rule.saturates) return beyond(tensor, format, done + *fault, values[*fault]);
    MOTLEY_TRY(writer.append(bytes));
    MOTLEY_TRY(watch.advance(bytes.size()));
  }
  return {};
}

// The number of runs of at most `limit` in total weight. REQUIRES: no weight is above it.
int runs_within(std::span<const std::uint64_t> weights, std::uint64_t limit) {
  int runs = 1;
  std::uint64_t sum = 0;
  for (const std::uint64_t weight : weights) {
    if (weight > limit - sum) {
      ++runs;
      sum = 0;
    }
    sum += weight;
  }
  return runs;
}

}  // namespace

std::uint64_t bytes_of(std::span<const NewTensor> tensors, FloatFormat format) {
  std::uint64_t bytes = 0;
  for (const NewTensor& tensor : tensors) bytes += tensor_bytes(outline_of(tensor, format));
  return bytes;
}

FileParts parts_up_to(std::span<const NewTensor> tensors,
                      FloatFormat format,
                      std::uint64_t bytes_max) {
  FileParts parts;
  std::size_t first = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t more = tensor_bytes(outline_of(tensors[i], format));
    if (i > first && (bytes >= bytes_max || more > bytes_max - bytes)) {
      parts.push_back(tensors.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += more;
  }
  parts.push_back(tensors.subspan(first));
  return parts;
}

std::vector<std::size_t> even_cuts(std::span<const std::uint64_t> weights, int parts) {
  MOTLEY_CHECK(parts > 0, "{} parts", parts);
  std::uint64_t low = weights.empty() ? 0 : *std::ranges::max_element(weights);
  std::uint64_t high = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (runs_within(weights, middle) <= parts) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  std::vector<std::size_t> ends;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > high - sum) {
      ends.push_back(i);
      sum = 0;
    }
    sum += weights[i];
  }
  ends.resize(static_cast<std::size_t>(parts), weights.size());
  return ends;
}

std::uint64_t files_bytes_max(std::span<const NewTensor> tensors, FloatFormat format) {
  constexpr std::uint64_t kJsonBytes = std::uint64_t{1} << 20;  // an index, a manifest, …
  constexpr std::uint64_t kEntryBytes = 512;  // per tensor in headers and JSON, without its name
  std::uint64_t bytes = kJsonBytes + bytes_of(tensors, format);
  for (const NewTensor& tensor : tensors) bytes += kEntryBytes + 4 * tensor.name.size();
  return bytes;
}

Result<void> check_writable(std::span<const NewTensor> tensors) {
  const auto unwritable = [](std::string cause) {
    return Error{ErrorCode::kCorrupt, "these tensors cannot be written to a file", std::move(cause),
                 "check that the weights are those of a model"};
  };
  if (tensors.size() > kSafetensorsTensorsMax) {
    return unwritable(fmt::format("there are {}; the limit of a file is {}", tensors.size(),
                                  kSafetensorsTensorsMax));
  }
  std::set<std::string_view> names;
  for (const NewTensor& tensor : tensors) {
    if (!is_writable_name(tensor.name)) {
      return unwritable(
          fmt::format("the name '{}' is not of printable ASCII", excerpt(tensor.name)));
    }
    if (!names.insert(tensor.name).second) {
      return unwritable(fmt::format("duplicate name '{}'", tensor.name));
    }
  }
  return {};
}

Result<WrittenFile> write_tensors(const std::filesystem::path& path,
                                  std::span<const NewTensor> tensors,
                                  const FormatRule& rule,
                                  WorkObserver& watch) {
  std::vector<TensorOutline> outlines;
  outlines.reserve(tensors.size());
  for (const NewTensor& tensor : tensors) outlines.push_back(outline_of(tensor, rule.format));
  MOTLEY_TRY(watch.advance(0));  // a file without tensors takes time too
  // transformers rejects a file without this key, which names the framework.
  MOTLEY_ASSIGN(SafetensorsWriter writer,
                SafetensorsWriter::create(path, outlines, {{"format", "pt"}}));
  for (const NewTensor& tensor : tensors) MOTLEY_TRY(write_tensor(writer, tensor, rule, watch));
  return writer.close();
}

}  // namespace motley

#include "training/boundary_tensors.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/device/host_floats.h"
#include "models/layers/failure_of.h"

namespace motley {
namespace {

// The owner of the result of from_layers().
struct MadeTensor {
  at::Tensor tensor;
  std::int64_t floats = 0;  // fp32 elements at its start
};

const MadeTensor& made_tensor(const OwnedBoundary& made) {
  return *static_cast<const MadeTensor*>(made.owner.get());
}

// Views of the tensor's floats and exact bytes; empty if it lies on a device.
BoundaryBuffer parts(const at::Tensor& tensor, std::int64_t floats) {
  if (tensor.scalar_type() == at::kFloat) return {floats_of(tensor), {}};
  if (!tensor.is_cpu()) return {};
  const std::span<std::byte> bytes = bytes_of(tensor);
  const auto count = static_cast<std::size_t>(floats);
  return {{reinterpret_cast<float*>(bytes.data()), count}, bytes.subspan(count * sizeof(float))};
}

std::int64_t float_bytes(std::int64_t floats) {
  return floats * static_cast<std::int64_t>(sizeof(float));
}

// The message, encoded on the device: the encoded floats, followed by the exact bytes.
at::Tensor encode(const MadeTensor& made, const DeviceFormat& format) {
  if (made.floats == 0) return made.tensor.view({-1}).view(at::kByte);
  if (made.tensor.scalar_type() == at::kFloat) return format.encode(made.tensor);
  const std::int64_t first_exact = float_bytes(made.floats);
  const at::Tensor floats = made.tensor.narrow(0, 0, first_exact).view(at::kFloat);
  const at::Tensor exact = made.tensor.narrow(0, first_exact, made.tensor.numel() - first_exact);
  return at::cat({format.encode(floats).contiguous().view(at::kByte), exact});
}

at::Tensor decode(const at::Tensor& message_B,
                  const DeviceFormat& format,
                  const BoundaryLayout& layout) {
  const std::int64_t elements = c10::multiply_integers(layout.sizes);
  if (layout.floats == 0) return message_B.view(layout.type).view(layout.sizes);
  if (layout.type == at::kFloat) return format.decode(message_B, elements).view(layout.sizes);
  const std::int64_t exact_bytes = elements - float_bytes(layout.floats);
  const std::int64_t coded_bytes = message_B.numel() - exact_bytes;
  const at::Tensor floats = format.decode(message_B.narrow(0, 0, coded_bytes), layout.floats);
  return at::cat(
      {floats.contiguous().view(at::kByte), message_B.narrow(0, coded_bytes, exact_bytes)});
}

// REQUIRES: the type is one of a data source's, and `bytes` are as many elements.
void write_words(std::span<const std::int32_t> words, Dtype type, std::span<std::byte> bytes) {
  const auto write = [&]<class T>(T value) {
    for (const std::int32_t word : words) {
      value = static_cast<T>(word);
      std::memcpy(bytes.data(), &value, sizeof value);
      bytes = bytes.subspan(sizeof value);
    }
  };
  if (type == Dtype::kInt64) return write(std::int64_t{});
  if (type == Dtype::kBool) return write(std::uint8_t{});
  MOTLEY_CHECK(type == Dtype::kFloat32, "data of another type");
  std::memcpy(bytes.data(), words.data(), words.size_bytes());
}

// The `arrive` function of OwnedValues.
std::function<Result<void>(const std::string& words)> arrival_of(
    const DeviceCopies::Download& download) {
  return [download](const std::string& words) -> Result<void> {
    // Runs on any thread; callers do not expect LibTorch's exceptions.
    try {
      download.wait();
    } catch (const std::exception& thrown) {
      return failure_of(thrown, words);
    }
    return {};
  };
}

}  // namespace

BoundaryTensors::BoundaryTensors(const ComputeDevice& device) {
  if (!device.is_host()) copies_ = std::make_unique<DeviceCopies>(device);
}

at::Tensor BoundaryTensors::receive_buffer(const std::vector<std::int64_t>& sizes,
                                           at::ScalarType type) {
  return on_host() ? at::empty(sizes, type) : copies_->staging(sizes, type);
}

at::Tensor BoundaryTensors::buffer_with_values(std::span<const std::int32_t> words,
                                               const TensorSpec& spec,
                                               std::int64_t samples) {
  if (spec.type == Dtype::kFloat32) {
    at::Tensor floats = receive_buffer(spec.sizes(samples), at::kFloat);
    std::memcpy(floats.data_ptr<float>(), words.data(), words.size_bytes());
    return floats;
  }
  const bool are_truth_values = spec.type == Dtype::kBool;
  at::Tensor exact = receive_buffer(spec.sizes(samples), are_truth_values ? at::kBool : at::kLong);
  write_words(words, spec.type, bytes_of(exact));
  return exact;
}

at::Tensor BoundaryTensors::buffer_with_values(std::span<const std::int32_t> words,
                                               const std::vector<SampleInput>& inputs,
                                               std::int64_t samples) {
  if (inputs.size() == 1) return buffer_with_values(words, inputs.front().tensor, samples);
  std::int64_t bytes = 0;
  for (const SampleInput& input : inputs) bytes += samples * input.tensor.bytes();
  at::Tensor packed = receive_buffer({bytes}, at::kByte);
  std::span<std::byte> left = bytes_of(packed);
  const std::size_t sample_words = words.size() / static_cast<std::size_t>(samples);
  std::size_t first = 0;
  for (const SampleInput& input : inputs) {
    const auto count = static_cast<std::size_t>(input.tensor.count());
    const auto input_bytes = static_cast<std::size_t>(input.tensor.bytes());
    for (std::size_t b = 0; b < static_cast<std::size_t>(samples); ++b) {
      write_words(words.subspan(b * sample_words + first, count), input.tensor.type,
                  left.first(input_bytes));
      left = left.subspan(input_bytes);
    }
    first += count;
  }
  MOTLEY_CHECK(left.empty() && first == sample_words, "{} words a sample for inputs of {}",
               sample_words, first);
  return packed;
}

const DeviceFormat* BoundaryTensors::format_of(const std::string& codec) const {
  return on_host() ? nullptr : find_device_format(codec, copies_->device());
}

BoundaryBuffer BoundaryTensors::parts_of(const at::Tensor& receive_buffer,
                                         const BoundaryLayout& layout) {
  return parts(receive_buffer, layout.floats);
}

Arrival BoundaryTensors::message_buffer(const DeviceFormat& format,
                                        std::size_t bytes,
                                        BoundaryLayout layout) {
  return {copies_->staging({static_cast<std::int64_t>(bytes)}, at::kByte), &format,
          std::move(layout)};
}

at::Tensor BoundaryTensors::to_layers(Arrival arrival) {
  // Output of this rank's other layers is already on the device.
  if (on_host() || !arrival.tensor.is_cpu()) return std::move(arrival.tensor);
  if (arrival.format == nullptr) return copies_->upload(std::move(arrival.tensor));
  return copies_->upload(std::move(arrival.tensor), [&](const at::Tensor& message_B) {
    return decode(message_B, *arrival.format, arrival.layout);
  });
}

OwnedBoundary BoundaryTensors::from_layers(at::Tensor tensor, std::int64_t floats) const {
  if (!tensor.defined()) return {};
  const BoundaryBuffer there = parts(tensor, floats);
  auto owner = std::make_shared<const MadeTensor>(MadeTensor{std::move(tensor), floats});
  return {{there.floats, std::move(owner), {}}, there.exact};
}

OwnedBoundary BoundaryTensors::to_host(OwnedBoundary made) {
  if (on_host()) return made;
  const auto& [tensor, floats] = made_tensor(made);
  const DeviceCopies::Download download = copies_->download(tensor);
  const BoundaryBuffer here = parts(download.host, floats);
  return {{here.floats, std::make_shared<const at::Tensor>(download.host), arrival_of(download)},
          here.exact};
}

OwnedBytes BoundaryTensors::to_host(const OwnedBoundary& made, const DeviceFormat& format) {
  const MadeTensor& there = made_tensor(made);
  const DeviceCopies::Download download =
      copies_->download(there.tensor, [&](const at::Tensor& tensor) {
        return encode({tensor, there.floats}, format);
      });
  return {bytes_of(download.host), std::make_shared<const at::Tensor>(download.host),
          arrival_of(download)};
}

at::Tensor BoundaryTensors::hand_over(OwnedBoundary made, const BoundaryLayout& layout) const {
  if (!on_host()) return made_tensor(made).tensor.view(layout.sizes);
  MOTLEY_CHECK(static_cast<std::int64_t>(made.values.size()) == layout.floats,
               "{} floats for a boundary of {}", made.values.size(), layout.floats);
  const std::span<const std::byte> floats = std::as_bytes(made.values);
  const std::int64_t exact_bytes =
      layout.type == at::kByte ? layout.sizes.front() - float_bytes(layout.floats) : 0;
  MOTLEY_CHECK(static_cast<std::int64_t>(made.exact.size()) == exact_bytes &&
                   (exact_bytes == 0 || made.exact.data() == floats.data() + floats.size()),
               "{} exact bytes after the floats of a boundary of {}", made.exact.size(),
               exact_bytes);
  // The tensor shares the memory and holds its owner.
  float* const first = made.values.data();
  return at::from_blob(
      first, layout.sizes, [owner = std::move(made.owner)](void* /*first*/) {}, layout.type);
}

}  // namespace motley

#include "cli/ckpt/quantised_values.h"

#include <utility>

namespace motley {
namespace {

constexpr std::uint64_t kByteValues = 256;
constexpr std::uint64_t kCodesInByte = 2;
constexpr auto kBlock = static_cast<std::uint64_t>(kQuantisedBlock);

}  // namespace

QuantisedValues::QuantisedValues(const SafetensorsFile& file, QuantisedWeight weight)
    : file_(file),
      weight_(std::move(weight)),
      columns_(static_cast<std::uint64_t>(weight_.tensor.shape[1])),
      has_scales_of_rows_(file_.entries().at(weight_.scales).shape ==
                          std::vector<std::int64_t>{weight_.tensor.shape[0], 1}) {}

Result<void> QuantisedValues::next(std::span<float> values) {
  if (values.empty()) return {};
  MOTLEY_TRY(weight_.has_four_bits() ? next_of_four_bits(values) : next_of_eight_bits(values));
  done_ += values.size();
  return {};
}

Result<void> QuantisedValues::next_of_eight_bits(std::span<float> values) {
  codes_.resize(values.size());
  MOTLEY_TRY(file_.read_bytes_part(weight_.codes, done_, codes_));
  const std::uint64_t first_row = done_ / columns_;
  if (has_scales_of_rows_) {
    scales_.resize((done_ + values.size() - 1) / columns_ - first_row + 1);
    MOTLEY_TRY(file_.read_part(weight_.scales, first_row, scales_));
  } else if (scales_.empty()) {
    scales_.resize(columns_);
    MOTLEY_TRY(file_.read_part(weight_.scales, 0, scales_));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t position = done_ + i;
    const auto scale = has_scales_of_rows_ ? position / columns_ - first_row : position % columns_;
    values[i] = static_cast<float>(static_cast<std::int8_t>(codes_[i])) * scales_[scale];
  }
  return {};
}

Result<void> QuantisedValues::next_of_four_bits(std::span<float> values) {
  if (table_.empty()) {
    table_.resize(kByteValues * kCodesInByte);
    MOTLEY_TRY(file_.read_part(weight_.table, 0, table_));
  }
  const std::uint64_t last = done_ + values.size() - 1;
  const std::uint64_t first_byte = done_ / kCodesInByte;
  codes_.resize(last / kCodesInByte - first_byte + 1);
  MOTLEY_TRY(file_.read_bytes_part(weight_.codes, first_byte, codes_));
  const std::uint64_t first_block = done_ / kBlock;
  scales_.resize(last / kBlock - first_block + 1);
  MOTLEY_TRY(file_.read_part(weight_.scales, first_block, scales_));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t position = done_ + i;
    const auto byte = static_cast<std::size_t>(codes_[position / kCodesInByte - first_byte]);
    values[i] = table_[byte * kCodesInByte + position % kCodesInByte] *
                scales_[position / kBlock - first_block];
  }
  return {};
}

}  // namespace motley

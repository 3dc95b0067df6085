#include "data/array_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "data/augmentation/image_view.h"
#include "data/data_remarks.h"
#include "data/finite_values.h"
#include "data/held_out_path.h"
#include "data/identity.h"
#include "data/order/permutation.h"
#include "data/order/windows.h"
#include "data/sample_maker.h"
#include "data/value_limits.h"

namespace motley {
namespace {

// The choice of held-out samples does not depend on the seed.
constexpr std::uint64_t kHoldoutKey = 0x68656C64206F7574;

// The numbers of training and held-out samples of a file. Files are often sorted by target, so the
// last ones would be of one class: samples are permuted, and those at the end of the permutation
// are held out.
struct Split {
  std::uint64_t train = 0;
  std::uint64_t eval = 0;
};

Result<Split> split_samples(const ExampleFiles& files, double holdout, const std::string& path) {
  const std::uint64_t samples = files.train.size();
  if (files.held_out) return Split{samples, files.held_out->size()};
  const auto eval = static_cast<std::uint64_t>(static_cast<double>(samples) * holdout);
  if (holdout > 0 && eval == 0) {
    return Error{ErrorCode::kData, fmt::format("too few samples, {}", path),
                 fmt::format("data.holdout = {} of {} samples is not one", holdout, samples),
                 "use more data, or data.holdout = 0 with train.eval_every = 0"};
  }
  return Split{samples - eval, eval};
}

ViewDraw views_of(const SampleMaker& maker, const DataConfig& data, std::uint64_t seed) {
  if (data.augment.empty()) return {data, seed, 0, 0};
  const auto shape = maker.image_shape();
  return {data, seed, shape[1], shape[2]};
}

class ArraySource final : public Source {
 public:
  ArraySource(ExampleFiles files,
              SampleMaker maker,
              const DataConfig& data,
              const SampleFormat& format,
              Split split,
              std::uint64_t seed)
      : files_(std::move(files)),
        maker_(std::move(maker)),
        data_(data),
        format_(format),
        views_(views_of(maker_, data, seed)),
        split_(split),
        chosen_(files_.train.size(), kHoldoutKey, 0),
        order_(seed, split.train) {}

  void train_sample(std::uint64_t index,
                    std::span<std::int32_t> input,
                    std::span<std::int32_t> target) const override {
    const auto [epoch, place] = order_.place(index);
    const std::uint64_t sample = chosen_(place);
    if (views_.is_plain()) {
      maker_.write_inputs(files_.train, sample, input);
    } else {
      const ImageView view = views_.view(epoch, sample);
      maker_.write_inputs(files_.train, sample, input, &view);
    }
    maker_.write_target(files_.train, sample, target);
  }

  void eval_sample(std::uint64_t index,
                   std::span<std::int32_t> input,
                   std::span<std::int32_t> target) const override {
    MOTLEY_CHECK(split_.eval > 0, "nothing is held out");
    const std::uint64_t place = index % split_.eval;
    const Examples& examples = files_.held_out ? *files_.held_out : files_.train;
    const std::uint64_t sample = files_.held_out ? place : chosen_(split_.train + place);
    maker_.write_inputs(examples, sample, input);
    maker_.write_target(examples, sample, target);
  }

  [[nodiscard]] std::uint64_t train_samples() const override { return split_.train; }

  [[nodiscard]] std::uint64_t eval_samples() const override { return split_.eval; }

  [[nodiscard]] DataIdentity identity() const override {
    return identify(files_.storage.content());
  }

  [[nodiscard]] std::vector<std::string> class_names() const override { return files_.class_names; }

  [[nodiscard]] const ExampleFiles* examples() const override { return &files_; }

  [[nodiscard]] double bytes_per_token() const override { return 0; }

  [[nodiscard]] std::vector<std::string> remarks() const override {
    return example_remarks(files_, data_, format_);
  }

  void release_pages() const override { files_.storage.release_pages(); }

 private:
  ExampleFiles files_;
  SampleMaker maker_;
  DataConfig data_;
  SampleFormat format_;
  ViewDraw views_;
  Split split_;
  Permutation chosen_;
  WindowOrder order_;
};

constexpr std::int64_t kTruthValues = 2;

// Truth values are checked too: bytes other than 0 and 1 are none.
ValueLimits limits_of(const SampleInput& input, const Column& column) {
  const bool has_truth_values =
      input.tensor.type == Dtype::kBool || column.type() == ElementType::kBool;
  if (!has_truth_values) return {input.limit, {}};
  return {std::min(input.limit.value_or(kTruthValues), kTruthValues), {}};
}

Result<void> check_examples(const Examples& examples,
                            const DataConfig& data,
                            const SampleFormat& format,
                            ProgressCounter* work) {
  for (std::size_t k = 0; k < examples.inputs.size(); ++k) {
    const SampleInput& input = format.inputs[k];
    if (input.tensor.type == Dtype::kFloat32) continue;
    const Column& column = examples.inputs[k];
    MOTLEY_TRY(check_values("input", column, limits_of(input, column), work));
  }
  if (format.target.type == Dtype::kInt64) {
    MOTLEY_TRY(check_values("target", examples.targets,
                            {format.target_limit, format.ignored_target}, work));
  }
  if (data.allow_nonfinite) return {};
  for (const Column& column : examples.inputs) MOTLEY_TRY(check_finite("input", column, work));
  return check_finite("target", examples.targets, work);
}

// Held-out samples of data.holdout_path are for evaluation alone: without a target they have none.
Result<void> check_held_out(const Examples& examples,
                            const DataConfig& data,
                            const SampleFormat& format,
                            ProgressCounter* work) {
  const Result<void> checked = check_examples(examples, data, format, work);
  if (!has_held_out_path(data)) return checked;
  if (!checked.ok()) return of_held_out_path(checked.error());
  const Result<void> any = check_any_target(examples.targets, format.ignored_target);
  return any.ok() ? any : of_held_out_path(any.error());
}

}  // namespace

Result<std::unique_ptr<const Source>> make_array_source(ExampleFiles files,
                                                        const DataConfig& data,
                                                        const SampleFormat& format,
                                                        std::int64_t seed,
                                                        ProgressCounter* work) {
  MOTLEY_ASSIGN(auto maker, SampleMaker::make(data, format, files.train));
  MOTLEY_ASSIGN(const Split split, split_samples(files, data.holdout, data.path));
  MOTLEY_TRY(check_examples(files.train, data, format, work));
  MOTLEY_TRY(check_any_target(files.train.targets, format.ignored_target));
  if (files.held_out) MOTLEY_TRY(check_held_out(*files.held_out, data, format, work));
  const auto bits = static_cast<std::uint64_t>(seed);
  return std::unique_ptr<const Source>(
      std::make_unique<ArraySource>(std::move(files), std::move(maker), data, format, split, bits));
}

}  // namespace motley

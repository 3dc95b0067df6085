// Exported models compared with eager PyTorch, whose values tests/python/make_packages.py has
// stored beside them, and the layers' guarantees about bits; on the tested device.
#include "models/layers/graph_layer.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/system/files.h"
#include "package_chain.h"
#include "package_changes.h"
#include "tests/support/tested_device.h"

namespace motley::testing {
namespace {

constexpr double kTolerance = 1e-5;  // relative to the largest value of a tensor; docs/numerics.md

// Relative to the model's largest gradient. A smaller gradient in PyTorch is 0 in exact
// arithmetic, like that of a bias before BatchNorm: it is rounding noise, which differs between
// versions of LibTorch.
constexpr double kRounding = 1e-6;

std::string packages_dir() {
  return std::string(MOTLEY_PACKAGES_DIR) + "/";
}

double largest(const at::Tensor& tensor) {
  return tensor.abs().max().item().toDouble();
}

// The largest |a - b| relative to the largest |b|; NaN counts as different.
double difference(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.sizes() == b.sizes(), a.sizes(), " and ", b.sizes());
  const double most = largest(b);
  const double distance = largest(a - b);
  return distance == 0 ? 0 : distance / most;
}

class ExportedModel : public ::testing::TestWithParam<std::string> {
 protected:
  ExportedModel()
      : chain_(must(read_package(packages_dir() + GetParam() + ".motley")),
               tested_device().torch()),
        reference_(
            must(SafetensorsFile::open(packages_dir() + GetParam() + ".reference.safetensors"))) {
    input_ = read("input");
    targets_ = read("target");
  }

  [[nodiscard]] at::Tensor read(const std::string& name) const {
    return read_tensor(reference_, name);
  }

  [[nodiscard]] double number(const std::string& name) const {
    return read(name).item().toDouble();
  }

  [[nodiscard]] double largest_gradient() const {
    double most = 0;
    for (const auto& [name, entry] : reference_.entries()) {
      if (name.starts_with("grad/")) most = std::max(most, largest(read(name)));
    }
    return most;
  }

  c10::InferenceMode guard_;
  PackageChain chain_;
  SafetensorsFile reference_;
  at::Tensor input_;
  at::Tensor targets_;
};

TEST_P(ExportedModel, IsVerified) {
  const auto verified = verify_package(chain_.package());
  EXPECT_TRUE(verified.ok()) << describe(verified.error());
}

TEST_P(ExportedModel, HasPyTorchsLossAndGradients) {
  const PackageStep step = chain_.step(input_, targets_, {});
  EXPECT_NEAR(step.loss, number("loss"), kTolerance * std::abs(number("loss")));
  EXPECT_EQ(step.count, static_cast<std::int64_t>(number("count")));
  const double rounding = kRounding * largest_gradient();
  std::size_t compared = 0;
  for (const auto& [name, gradient] : chain_.by_name(step)) {
    const bool is_statistic = reference_.entries().contains("observed/" + name);
    const at::Tensor expected = read((is_statistic ? "observed/" : "grad/") + name);
    if (!is_statistic && largest(expected) <= rounding) {
      EXPECT_LE(largest(gradient), rounding) << name;
    } else {
      EXPECT_LE(difference(gradient, expected), kTolerance) << name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0U);
}

TEST_P(ExportedModel, EvaluatesAsPyTorch) {
  const auto outcome = chain_.forward(input_, targets_, {.training = false});
  const double expected = number("evaluated_loss");
  EXPECT_NEAR(outcome.loss_sum, expected, kTolerance * std::abs(expected));
  EXPECT_EQ(outcome.count, number("count"));
}

TEST_P(ExportedModel, CountsTargetsAmongTheFiveHighestScores) {
  const auto outcome = chain_.forward(input_, targets_, {.training = false});
  const at::Tensor scores = read("score").flatten(0, -2);
  const std::int64_t classes = scores.size(-1);
  if (!outcome.correct || classes <= PredictionCounts::kFive) {
    EXPECT_FALSE(outcome.predictions.has_value());
    return;
  }
  const at::Tensor ids = targets_.reshape({-1, 1});
  const at::Tensor best = std::get<1>(scores.topk(PredictionCounts::kFive, -1)).eq(ids);
  ASSERT_TRUE(outcome.predictions.has_value());
  EXPECT_EQ(outcome.predictions->targets, outcome.count);
  EXPECT_EQ(outcome.predictions->first, *outcome.correct);
  EXPECT_EQ(outcome.predictions->first, best.select(1, 0).sum().item().toLong());
  EXPECT_EQ(outcome.predictions->top_five, best.sum().item().toLong());
}

TEST_P(ExportedModel, ScoresAsPyTorch) {
  const at::Tensor expected = read("score");
  if (expected.dim() == 2) {
    EXPECT_LE(difference(chain_.scores_at(input_, 0), expected), kTolerance);
    return;
  }
  for (std::int64_t position = 0; position < expected.size(1); ++position) {
    EXPECT_LE(difference(chain_.scores_at(input_, position), expected.select(1, position)),
              kTolerance);
  }
}

TEST_P(ExportedModel, SplitAndRecomputedBackwardsHaveTheBitsOfTheWhole) {
  const MicroContext micro{.seed = 3, .step = 5, .micro = 2};
  const PackageStep whole = chain_.step(input_, targets_, micro);
  EXPECT_TRUE(whole.same_bits(chain_.step(input_, targets_, micro)));
  EXPECT_TRUE(whole.same_bits(chain_.step(input_, targets_, micro, PackageChain::Way::kSplit)));
  EXPECT_TRUE(whole.same_bits(chain_.step(input_, targets_, micro, PackageChain::Way::kRecompute)));
}

TEST_P(ExportedModel, TakesMicroBatchesOfAnySize) {
  const PackageStep step = chain_.step(input_, targets_, {});
  double loss = 0;
  double count = 0;
  for (std::int64_t b = 0; b < input_.size(0); ++b) {
    const auto outcome = chain_.forward(input_.narrow(0, b, 1).contiguous(),
                                        targets_.narrow(0, b, 1).contiguous(), {.training = false});
    loss += outcome.loss_sum;
    count += outcome.count;
  }
  EXPECT_EQ(count, step.count);
  EXPECT_NEAR(loss, number("evaluated_loss"), kTolerance * std::abs(loss));
  EXPECT_TRUE(step.same_bits(chain_.step(input_, targets_, {})));
}

// Values from other positions, mismatched roles and operations, invalid sizes: each change either
// runs, is refused when the package is read, or ends in an error of a graph. Any other exception
// fails.
TEST_P(ExportedModel, WithRandomChangesRunsOrSaysWhyNot) {
  const Package& right = chain_.package();
  PackageChanges changes(must(read_file(right.folder / kPackageFileName)));
  int refused = 0;
  for (int change = 0; change < 200; ++change) {
    auto package = parse_package(changes.next(), "package.json");
    if (!package.ok() || package->inputs != right.inputs || package->target != right.target) {
      continue;
    }
    package->folder = right.folder;
    try {
      PackageChain chain(std::make_shared<const Package>(*std::move(package)),
                         tested_device().torch());
      static_cast<void>(chain.step(input_, targets_, {}));
    } catch (const std::runtime_error& said) {  // GraphFailure is one, LibTorch's exceptions are
                                                // not
      EXPECT_NE(std::string(said.what()), "");
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(All, ExportedModel, all_packages(), package_test_name);

}  // namespace
}  // namespace motley::testing

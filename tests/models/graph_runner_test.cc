// Hand-written graphs: results of valid ones, and errors of invalid ones.
#include "models/graph/graph_runner.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <c10/core/InferenceMode.h>

#include "base/json.h"
#include "models/graph/graph_failure.h"
#include "models/layers/dropout.h"
#include "models/layers/placed_draws.h"
#include "package_chain.h"
#include "package_changes.h"

namespace motley::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// The package of tests/fuzz/package_laws.h with its weights in a folder; tests can change it.
class HandPackage {
 public:
  HandPackage() {
    folder_ = std::filesystem::temp_directory_path() /
              ("motley-graph-test-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    std::vector<float> values(64);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 0.1F * static_cast<float>(i % 7) - 0.2F;
    const auto part = [&](std::size_t first, std::size_t count) {
      return std::span<const float>(values).subspan(first, count);
    };
    const auto written = write_safetensors(folder_ / "weights.safetensors",
                                           {{"body.weight", {3, 4}, part(0, 12)},
                                            {"body.bias", {3}, part(12, 3)},
                                            {"body.mean", {3}, part(15, 3)},
                                            {"body.scale", {3}, part(18, 3)},
                                            {"head.weight", {2, 7}, part(21, 14)}},
                                           {});
    bytes_ = must(written).bytes;
  }

  HandPackage(const HandPackage&) = delete;
  HandPackage& operator=(const HandPackage&) = delete;

  ~HandPackage() { std::filesystem::remove_all(folder_); }

  [[nodiscard]] Result<std::shared_ptr<const Package>> read(std::string text) const {
    MOTLEY_ASSIGN(Package package, parse_package(text, "package.json"));
    package.folder = folder_;
    package.weights.bytes = bytes_;
    return std::make_shared<const Package>(std::move(package));
  }

 private:
  std::filesystem::path folder_;
  std::uint64_t bytes_ = 0;
};

std::string changed(const std::string& old, const std::string& with) {
  std::string text = right_package();
  const std::size_t at = text.find(old);
  EXPECT_NE(at, text.npos) << old;
  return text.replace(at, old.size(), with);
}

at::Tensor some_input(std::int64_t samples) {
  return at::arange(samples * 4, at::kFloat).view({samples, 4}) * 0.3 - 1;
}

at::Tensor some_targets(std::int64_t samples) {
  return at::arange(samples, at::kLong).remainder(3) - 1;  // -1 is ignored
}

// Samples in the package's input format.
at::Tensor samples_for(const TensorSpec& spec, const at::Tensor& values) {
  std::vector<std::int64_t> sizes = {values.size(0)};
  sizes.insert(sizes.end(), spec.shape.begin(), spec.shape.end());
  const at::Tensor fitting = values.numel() == values.size(0) * spec.count()
                                 ? values.reshape(sizes)
                                 : at::zeros(sizes, values.options());
  return fitting.to(spec.type == Dtype::kInt64 ? at::kLong : at::kFloat).contiguous();
}

class HandGraph : public ::testing::Test {
 protected:
  // The result of a step of the package with this text, or its error.
  Result<PackageStep> run(const std::string& text, std::int64_t samples = 5) {
    MOTLEY_ASSIGN(const auto package, hand_.read(text));
    const auto prepared =
        PreparedPackage::prepare(package, 0, static_cast<int>(package->layers.size()));
    if (!prepared.ok()) return prepared.error();
    try {
      PackageChain chain(package);
      return chain.step(samples_for(package->inputs.front().tensor, some_input(samples)),
                        samples_for(package->target, some_targets(samples)), {});
    } catch (const GraphFailure& failure) {
      return failure.error();
    } catch (const std::runtime_error& error) {
      return Error{.what = error.what()};  // about the weights, which read_package would have
                                           // refused
    }
  }

  Error error_with(const std::string& old, const std::string& with) {
    const auto step = run(changed(old, with));
    EXPECT_FALSE(step.ok());
    return step.ok() ? Error{} : step.error();
  }

  c10::InferenceMode guard_;
  HandPackage hand_;
};

TEST_F(HandGraph, ComputesWhatItSays) {
  PackageChain chain(must(hand_.read(right_package())));
  const MicroContext micro{.seed = 4, .step = 9, .micro = 1};
  const at::Tensor x = some_input(6);
  const at::Tensor targets = some_targets(6);
  const PackageStep step = chain.step(x, targets, micro);

  const at::Tensor w = chain.values()[0];
  const at::Tensor scale =
      read_tensor(must(SafetensorsFile::open(chain.package().weights_path())), "body.scale");
  at::Tensor mask = at::ones({6, 3});
  DropoutStream(0.25, micro, /*layer=*/0, static_cast<DropoutSite>(3))
      .apply(mask.data_ptr<float>(), mask.data_ptr<float>(), mask.numel(), 0);
  const at::Tensor z = (at::mm(x, w.t()) + chain.values()[1]) * scale;
  const at::Tensor both = at::cat({z * mask, x}, 1);
  const at::Tensor v = chain.values()[3];
  const at::Tensor scores = at::mm(both, v.t());
  const at::Tensor seen = targets.ge(0);
  const at::Tensor right = at::one_hot(targets.clamp_min(0), 2).to(at::kFloat);
  const at::Tensor log_p = at::log_softmax(scores, 1);
  EXPECT_NEAR(step.loss, -(log_p * right).sum(1).mul(seen).sum().item().toDouble(), 1e-5);
  EXPECT_EQ(step.count, seen.sum().item().toLong());
  EXPECT_EQ(step.correct, scores.argmax(1).eq(targets).sum().item().toLong());

  const at::Tensor g = (log_p.exp() - right) * seen.unsqueeze(1);
  const at::Tensor g_z = at::mm(g, v).narrow(1, 0, 3) * mask * scale;
  const std::vector<at::Tensor> expected = {at::mm(g_z.t(), x), g_z.sum(0), z.mean(0),
                                            at::mm(g.t(), both)};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(at::allclose(step.gradients[i], expected[i], 1e-5, 1e-6)) << chain.names()[i];
  }
}

TEST_F(HandGraph, DrawsDropoutFromThePositionAlone) {
  PackageChain chain(must(hand_.read(right_package())));
  const at::Tensor x = some_input(8);
  const at::Tensor targets = some_targets(8);
  const PackageStep step = chain.step(x, targets, {.seed = 1, .step = 2, .micro = 3});
  EXPECT_TRUE(step.same_bits(chain.step(x, targets, {.seed = 1, .step = 2, .micro = 3})));
  EXPECT_FALSE(step.same_bits(chain.step(x, targets, {.seed = 2, .step = 2, .micro = 3})));
  EXPECT_FALSE(step.same_bits(chain.step(x, targets, {.seed = 1, .step = 3, .micro = 3})));
  EXPECT_FALSE(step.same_bits(chain.step(x, targets, {.seed = 1, .step = 2, .micro = 4})));
}

// The package with normal numbers for each sample instead of the mask.
std::string with_noise() {
  return changed(R"("motley::dropout_mask", "args": [{"value": 6}, 0.25, 3])",
                 R"("motley::normal", "args": [[{"batch": [0, 1]}, 3], 3])");
}

TEST_F(HandGraph, DrawsNumbersFromThePositionOfEachSample) {
  PackageChain chain(must(hand_.read(with_noise())));
  const at::Tensor x = some_input(6);
  const at::Tensor targets = some_targets(6);
  const PackageStep whole = chain.step(x, targets, {.seed = 1, .step = 2, .micro = 0});
  EXPECT_TRUE(whole.same_bits(
      chain.step(x, targets, {.seed = 1, .step = 2, .micro = 0}, PackageChain::Way::kRecompute)));
  EXPECT_FALSE(whole.same_bits(chain.step(x, targets, {.seed = 1, .step = 3, .micro = 0})));
  double parts = 0;
  for (std::int64_t m = 0; m < 3; ++m) {
    parts += chain
                 .step(x.slice(0, 2 * m, 2 * m + 2), targets.slice(0, 2 * m, 2 * m + 2),
                       {.seed = 1, .step = 2, .micro = m})
                 .loss;
  }
  EXPECT_NEAR(parts, whole.loss, 1e-5);
}

TEST_F(HandGraph, ComputesWithTheNumbersOfItsPlace) {
  PackageChain chain(must(hand_.read(with_noise())));
  const MicroContext micro{.seed = 4, .step = 9, .micro = 1};
  const at::Tensor x = some_input(6);
  const PackageStep step = chain.step(x, some_targets(6), micro);
  const DrawnNumbers drawn{.kind = DrawKind::kNormal, .sizes = {{0, 1}, {3, 0}}, .index = 3};
  const at::Tensor noise = PlacedDraws(micro, /*layer=*/0, 6).numbers(drawn, {6, 3}, at::kCPU);
  const at::Tensor scale =
      read_tensor(must(SafetensorsFile::open(chain.package().weights_path())), "body.scale");
  const at::Tensor z = (at::mm(x, chain.values()[0].t()) + chain.values()[1]) * scale;
  const at::Tensor scores = at::mm(at::cat({z * noise, x}, 1), chain.values()[3].t());
  const at::Tensor log_p = at::log_softmax(scores, 1);
  const at::Tensor targets = some_targets(6);
  const at::Tensor right = at::one_hot(targets.clamp_min(0), 2).to(at::kFloat);
  EXPECT_NEAR(step.loss, -(log_p * right).sum(1).mul(targets.ge(0)).sum().item().toDouble(), 1e-5);
}

TEST_F(HandGraph, RefusesToDrawMoreThanATensorHas) {
  const auto step = run(changed(R"("motley::dropout_mask", "args": [{"value": 6}, 0.25, 3])",
                                R"("motley::normal", "args": [[{"batch": [-9, 1]}, 3], 3])"));
  ASSERT_FALSE(step.ok());
  EXPECT_THAT(step.error().what, HasSubstr("cannot run node 3, motley::normal"));
  EXPECT_THAT(step.error().cause, HasSubstr("size asks for more than"));
}

TEST_F(HandGraph, DropsNothingAndEverythingAtTheEnds) {
  const PackageStep nothing = must(run(changed("0.25, 3", "0, 3")));
  EXPECT_TRUE(nothing.same_bits(must(run(changed("0.25, 3", "0.0, 4")))));
  const PackageStep everything = must(run(changed("0.25, 3", "1, 3")));
  EXPECT_EQ(everything.gradients[0].abs().sum().item().toDouble(), 0);
}

TEST_F(HandGraph, CountsAStatisticOnceWhenForwardRunsAgain) {
  PackageChain chain(must(hand_.read(right_package())));
  const PackageStep whole = chain.step(some_input(5), some_targets(5), {});
  const PackageStep again =
      chain.step(some_input(5), some_targets(5), {}, PackageChain::Way::kRecompute);
  EXPECT_TRUE(whole.same_bits(again));
  EXPECT_NE(whole.gradients[2].abs().sum().item().toDouble(), 0);
}

TEST_F(HandGraph, NamesWhatAKernelRefuses) {
  const Error error =
      error_with(R"(aten::addmm", "args": [{"value": 2}, {"value": 0}, {"value": 4})",
                 R"(aten::addmm", "args": [{"value": 2}, {"value": 0}, {"value": 1})");
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.what, HasSubstr("layer 'body', forward: cannot run node 1, aten::addmm"));
  EXPECT_THAT(error.cause, HasSubstr("shapes cannot be multiplied"));
  EXPECT_EQ(error.cause.find('\n'), std::string::npos);
}

TEST_F(HandGraph, RefusesArgumentsThatAreNotTheSchemas) {
  EXPECT_THAT(error_with("{\"value\": 6}, [0]]", "{\"value\": 6}, [0.5]]").cause,
              HasSubstr("'dim' is not of the type"));
  EXPECT_THAT(error_with("{\"value\": 6}, [0]]", "{\"value\": 6}, {\"value\": 1}]").cause,
              HasSubstr("'dim' is not of the type"));
  EXPECT_THAT(error_with("\"kwargs\": {\"beta\": 1}", "\"kwargs\": {\"gamma\": 1}").cause,
              HasSubstr("its schema lacks"));
  EXPECT_THAT(
      error_with("\"kwargs\": {\"beta\": 1}", "\"kwargs\": {\"mat1\": {\"value\": 0}}").cause,
      HasSubstr("given twice"));
  EXPECT_THAT(error_with("[{\"value\": 1}], \"kwargs\"", "[], \"kwargs\"").cause,
              HasSubstr("'self' is missing"));
  EXPECT_THAT(
      error_with("[{\"value\": 1}], \"kwargs\"", "[{\"value\": 1}, 1, 1], \"kwargs\"").cause,
      HasSubstr("more arguments"));
  EXPECT_THAT(error_with("\"kwargs\": {}, \"results\": 2},\n       {\"op\": \"aten::ne",
                         "\"kwargs\": {}, \"results\": 3},\n       {\"op\": \"aten::ne")
                  .cause,
              HasSubstr("it returns 2 values, not 3"));
}

TEST_F(HandGraph, FindsAnotherNumberOfListElementsWhenItRuns) {
  const Error error = error_with("[3, 4], 1], \"kwargs\": {},\n        \"results\": 2",
                                 "[3, 3, 1], 1], \"kwargs\": {},\n        \"results\": 2");
  EXPECT_THAT(error.cause, HasSubstr("another number of values"));
}

TEST_F(HandGraph, RefusesSizesThatNoPackageHas) {
  EXPECT_THAT(error_with("\"args\": [[], 1.0]", "\"args\": [[1048576, 1048577], 1.0]").cause,
              HasSubstr("size asks for more than"));
  EXPECT_THAT(
      error_with("\"args\": [[], 1.0]", "\"args\": [[{\"batch\": [0, 1099511627776]}], 1.0]").cause,
      HasSubstr("size asks for more than"));
  EXPECT_THAT(
      error_with("\"args\": [[], 1.0]", "\"args\": [[{\"batch\": [0, 9223372036854775807]}], 1.0]")
          .cause,
      HasSubstr("64 bits with 5 samples"));
}

TEST_F(HandGraph, RefusesOutputsOfAnotherShape) {
  const Error error = error_with("[\"output:0\", 8], [\"output:1\", 0], [\"saved:0\"",
                                 "[\"output:0\", 9], [\"output:1\", 0], [\"saved:0\"");
  EXPECT_THAT(error.what, HasSubstr("layer 'body' returns other results"));
  EXPECT_THAT(error.cause, HasSubstr("its outputs are Float [3]; Float [5, 3] was expected"));
  EXPECT_THAT(error_with("[\"parameter_grad:1\", 5]", "[\"parameter_grad:1\", 4]").cause,
              HasSubstr("gradients of its parameters"));
  EXPECT_THAT(error_with("[\"count:0\", 11]", "[\"count:0\", 7]").cause,
              HasSubstr("not one number"));
}

TEST_F(HandGraph, NamesAnOperationThatThisLibTorchLacks) {
  Graph graph;
  graph.nodes.push_back({.operation = "aten::of_tomorrow.Tensor", .results = 1});
  const auto runner = GraphRunner::make(graph, "layer 'x', forward");
  ASSERT_FALSE(runner.ok());
  EXPECT_EQ(runner.error().code, ErrorCode::kConfig);
  EXPECT_EQ(runner.error().what, "layer 'x', forward: cannot run node 0, aten::of_tomorrow.Tensor");
}

TEST_F(HandGraph, RefusesToDivideByNothing) {
  const auto step = run(changed(R"("aten::mean.dim", "args": [{"value": 6}, [0]])",
                                R"("aten::convolution", "args": [{"value": 6}, {"value": 1}, null,
                                   [1], [0], [1], false, [0], 0])"));
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.error().cause, "groups is less than 1");
}

// A changed package that can be read either runs or ends in an error that names its layer.
TEST_F(HandGraph, WithRandomChangesRunsOrSaysWhyNot) {
  PackageChanges changes;
  int ran = 0;
  int refused = 0;
  for (int change = 0; change < 10'000; ++change) {
    const std::string text = changes.next();
    const auto package = parse_package(text, "package.json");
    constexpr std::int64_t kSampleMax = 10'000;
    if (!package.ok() || package->inputs.front().tensor.count() > kSampleMax ||
        package->target.count() > kSampleMax) {
      continue;
    }
    const auto step = run(text, 1 + change % 3);
    ++(step.ok() ? ran : refused);
    // The first is an error of a graph, the second of missing weights.
    if (!step.ok()) {
      ASSERT_THAT(step.error().what, AnyOf(HasSubstr("layer '"), HasSubstr("tensor '"))) << text;
    }
  }
  EXPECT_GT(ran, 100);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace motley::testing

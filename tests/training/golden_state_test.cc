// Training resumes from checkpoints of every version with the same bits.
#include <deque>
#include <span>
#include <vector>

#include <gmock/gmock.h>

#include "base/hash.h"
#include "checkpoint/folders.h"
#include "checkpoint/manifest.h"
#include "run_config/config_io.h"
#include "tests/checkpoint/fixture.h"
#include "tests/checkpoint/golden_checkpoint.h"
#include "training/first_state.h"

namespace motley {
namespace {

using testing::golden_checkpoint;

using Hashes = std::map<std::string, std::string>;  // of values, by name

Config golden_config() {
  Config config;
  config.model = {.kind = "mlp", .layers = 1, .width = 8, .context = 2, .vocab = 8};
  return config;
}

// The whole model on one rank, unlike the plan that saved it.
class WholeModel {
 public:
  explicit WholeModel(const ModelSpec& model) {
    HeldChunk& chunk = held_.emplace_back();
    for (int layer = 0; const LayerSpec& each : model.layers) {
      for (const ParameterSpec& spec : each.parameters) {
        const auto count = static_cast<std::size_t>(spec.count());
        HeldParameter& parameter = chunk.parameters.emplace_back();
        parameter.layer = layer;
        parameter.spec = spec;
        parameter.values = memory_.emplace_back(count, -1.0F);
        parameter.gradients = memory_.emplace_back(count, 0.0F);
      }
      chunk.voted_layers.push_back(layer++);
    }
  }

  [[nodiscard]] const std::vector<HeldChunk>& held() const { return held_; }

 private:
  std::deque<std::vector<float>> memory_;  // stable addresses
  std::vector<HeldChunk> held_;
};

void add_hashes(const std::vector<TensorView>& views, Hashes& hashes) {
  for (const TensorView& view : views) hashes[view.name] = hash128_hex(std::as_bytes(view.values));
}

// The sum of the checkpoint's residuals of a parameter, added in their order to 0.
std::string residual_hash(const CheckpointReader& reader,
                          const ParameterSpec& spec,
                          const std::vector<std::string>& names) {
  std::vector<float> sum(static_cast<std::size_t>(spec.count()), 0);
  std::vector<float> residual(sum.size());
  for (const std::string& name : names) {
    EXPECT_OK(reader.read(name, spec.shape, residual));
    EXPECT_THAT(residual, ::testing::Contains(::testing::Ne(0))) << name << " is all zeros";
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += residual[i];
  }
  return hash128_hex(std::as_bytes(std::span(sum)));
}

// The state after loading the checkpoint; the residuals are added to the gradients.
Hashes resumed_from(const std::filesystem::path& checkpoint) {
  const Config config = golden_config();
  const ModelSpec model = *describe_model(config.model);
  WholeModel memory(model);
  StageState state(memory.held(), make_optimizer(config.train), "");
  ProgressCounter work;
  const auto progress = fill_state(state, config, model, checkpoint, work);
  EXPECT_OK(progress);
  if (!progress.ok()) return {};
  EXPECT_EQ(progress->step, 2);
  EXPECT_EQ(progress->optimizer_updates, 2);
  Hashes hashes;
  add_hashes(state.parameter_views(), hashes);
  add_hashes(state.moment_views(), hashes);
  add_hashes(state.residual_views(), hashes);
  return hashes;
}

// The expected state, from the golden hashes of the files' tensors.
Hashes expected_of(const testing::GoldenCheckpoint& golden) {
  const ModelSpec model = *describe_model(golden_config().model);
  const auto reader = CheckpointReader::open(golden.folder());
  EXPECT_OK(reader);
  const std::string first = golden.version == 1 ? "residual.1/" : "residual.0/";
  const std::string second = golden.version == 1 ? "residual.2/" : "residual.1/";
  Hashes hashes;
  for (const auto& [name, hash] : golden.hashes) {
    if (!name.starts_with("residual.")) hashes[name] = hash;
  }
  for (const LayerSpec& layer : model.layers) {
    const bool is_summed = layer.name == model.layers.back().name;
    for (const ParameterSpec& spec : layer.parameters) {
      const std::vector<std::string> names = {first + spec.name, second + spec.name};
      hashes["residual.0/" + spec.name] =
          residual_hash(*reader, spec, is_summed ? names : std::vector<std::string>());
    }
  }
  return hashes;
}

TEST(GoldenState, GoesOnFromEveryVersionWithTheSameBits) {
  Hashes of_first;
  for (int version = 1; version <= kManifestVersion; ++version) {
    const testing::GoldenCheckpoint golden = golden_checkpoint(version);
    const Hashes resumed = resumed_from(golden.folder());
    EXPECT_EQ(resumed, expected_of(golden)) << version;
    if (version == 1) of_first = resumed;
    EXPECT_EQ(resumed, of_first) << version;
  }
}

// A run of an earlier version: a residual is a gradient, independent of the codec that left it.
TEST(GoldenState, GoesOnFromTheResidualsOfARemovedCodec) {
  const testing::GoldenCheckpoint golden = golden_checkpoint(kManifestVersion);
  const testing::TempFolder folder;
  const auto copy = folder.path() / "step-000002";
  std::filesystem::copy(golden.folder(), copy);
  auto manifest = read_manifest(copy);
  ASSERT_OK(manifest);
  ASSERT_TRUE(manifest->state.plan.has_value());
  manifest->state.plan->gradient_codec = "lowrank(4)|fp16";
  manifest->config["compression"]["gradients"] = "lowrank(4)|fp16";
  testing::write_bytes(copy / kManifestName, format_manifest(*manifest));

  const auto read = read_manifest(copy);
  ASSERT_OK(read);
  EXPECT_EQ(read->state.plan->gradient_codec, "lowrank(4)|fp16");
  const auto config = saved_config_from_json(read->config, copy.string());
  ASSERT_OK(config);
  EXPECT_EQ(config->compression.gradients, "lowrank(4)|fp16");
  EXPECT_EQ(resumed_from(copy), expected_of(golden));
}

}  // namespace
}  // namespace motley

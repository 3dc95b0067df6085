// The memory claims of a stored profile are checked against the model.
#include "profiling/impossible_memory.h"

#include <cstdint>

#include <gmock/gmock.h>

#include "models/spec/layer_memory.h"

namespace motley {
namespace {

using testing::HasSubstr;

class KeptMemory : public testing::Test {
 protected:
  KeptMemory() {
    for (int layer = 0; layer < static_cast<int>(model_.layers.size()); ++layer) {
      const LayerMemory memory = layer_memory(model_, layer);
      for (const int samples : {1, 64}) {
        LayerSample sample;
        sample.micro_batch = samples;
        sample.saved_bytes = samples * memory.saved_bytes;
        sample.workspace_bytes = samples * memory.workspace_bytes;
        kept_.layers[signature(layer)].push_back(sample);
      }
    }
  }

  [[nodiscard]] const std::string& signature(int layer) const {
    return model_.layers[static_cast<std::size_t>(layer)].signature;
  }

  static ModelConfig config() {
    ModelConfig model;
    model.kind = "gpt2";
    model.layers = 1;
    model.width = 64;
    model.heads = 4;
    model.context = 32;
    model.vocab = 100;
    return model;
  }

  const ModelSpec model_ = describe_model(config()).value();
  DeviceProfile kept_;
};

TEST_F(KeptMemory, ThatFollowsTheFormulasIsPossible) {
  EXPECT_EQ(impossible_memory(kept_, model_), std::nullopt);
  for (auto& [signature, samples] : kept_.layers) {
    for (LayerSample& sample : samples) sample.workspace_bytes += 4 * sample.saved_bytes;
  }
  EXPECT_EQ(impossible_memory(kept_, model_), std::nullopt);
}

TEST_F(KeptMemory, ThatIsAbsurdIsNamed) {
  DeviceProfile saved = kept_;
  saved.layers[signature(1)].back().saved_bytes = std::int64_t{1} << 47;
  EXPECT_THAT(impossible_memory(saved, model_).value_or(""),
              HasSubstr(signature(1) + " takes 131072.00 GiB at 64 samples"));
  DeviceProfile queued = kept_;
  queued.layers[signature(1)].front().split = SplitBackward{0, 0, std::int64_t{1} << 40};
  EXPECT_THAT(impossible_memory(queued, model_).value_or(""), HasSubstr("at 1 sample in it"));
  DeviceProfile baseline = kept_;
  baseline.baseline_bytes = std::int64_t{1} << 40;
  EXPECT_THAT(impossible_memory(baseline, model_).value_or(""), HasSubstr("without layers"));
}

// No plan of this model uses them.
TEST_F(KeptMemory, OfOtherModelsLayersDoesNotCount) {
  kept_.layers["gpt2.mlp(8192)"] = {{.micro_batch = 1, .saved_bytes = std::int64_t{1} << 47}};
  EXPECT_EQ(impossible_memory(kept_, model_), std::nullopt);
}

}  // namespace
}  // namespace motley

// Checkpoints of earlier versions are read as they were written.
#include "tests/checkpoint/golden_checkpoint.h"

#include <span>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors_header.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

using testing::golden_checkpoint;
using testing::GoldenCheckpoint;

class GoldenCheckpoints : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] const GoldenCheckpoint& golden() const { return golden_; }

 private:
  const GoldenCheckpoint golden_ = golden_checkpoint(GetParam());
};

TEST_P(GoldenCheckpoints, AreOfTheirVersionAndWhole) {
  const Json json = Json::parse(testing::read_bytes(golden().folder() / "manifest.json"));
  EXPECT_EQ(json.at("version"), GetParam());
  EXPECT_OK(verify_checkpoint(golden().folder()));
}

TEST_P(GoldenCheckpoints, HoldEveryTensorToTheBit) {
  const auto reader = CheckpointReader::open(golden().folder());
  ASSERT_OK(reader);
  std::map<std::string, std::string> hashes;
  for (const StoredTensor& tensor : reader->tensors()) {
    const std::string& name = tensor.outline.name;
    std::vector<float> values(tensor_bytes(tensor.outline) / sizeof(float));
    EXPECT_OK(reader->read(name, tensor.outline.shape, values));
    hashes[name] = hash128_hex(std::as_bytes(std::span(values)));
  }
  EXPECT_EQ(hashes, golden().hashes);
}

TEST_P(GoldenCheckpoints, SayWhereTheTrainingStands) {
  const auto manifest = read_manifest(golden().folder());
  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->state.step, 2);
  EXPECT_EQ(manifest->state.samples, 8U);
  EXPECT_EQ(manifest->state.tokens, 16U);
  EXPECT_EQ(manifest->state.optimizer_updates, 2);
  EXPECT_EQ(manifest->state.optimizer, "adamw");
  EXPECT_EQ(manifest->state.plan, (PlanFingerprint{1, {"none"}, "int8", {1, 2}}));
  for (const WrittenFile& file : manifest->files) EXPECT_EQ(file.machine, "");
}

INSTANTIATE_TEST_SUITE_P(OfVersion, GoldenCheckpoints, ::testing::Range(1, kManifestVersion + 1));

}  // namespace
}  // namespace motley

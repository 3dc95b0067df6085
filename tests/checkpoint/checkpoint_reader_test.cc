#include <rapidcheck.h>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using testing::OwnedTensor;
using testing::TempFolder;
using testing::TestRun;
using testing::views;
using testing::write_bytes;

constexpr const char* kIndex = "model.safetensors.index.json";

// Writes a file of one-value tensors, as another program might.
void write_foreign(const std::filesystem::path& path,
                   const std::vector<std::pair<std::string, float>>& tensors) {
  std::vector<OwnedTensor> owned;
  for (const auto& [name, value] : tensors) owned.push_back({name, {1}, {value}});
  ASSERT_OK(write_safetensors(path, views(owned), {}));
}

float read_one(const CheckpointReader& reader, const std::string& name) {
  std::vector<float> value(1);
  EXPECT_OK(reader.read(name, {1}, value));
  return value[0];
}

TEST(CheckpointReader, ReadsParametersAndMomentsOfEveryRank) {
  const TestRun run;
  const auto folder = run.save(10, 3, 1.25F);
  ASSERT_OK(folder);
  const auto reader = CheckpointReader::open(*folder);
  ASSERT_OK(reader);
  ASSERT_NE(reader->manifest(), nullptr);
  EXPECT_EQ(reader->manifest()->state.step, 10);
  for (const OwnedTensor& tensor : TestRun::parameters(1.25F)) {
    for (const std::string& name : {tensor.name, "exp_avg/" + tensor.name}) {
      std::vector<float> values(tensor.values.size());
      ASSERT_TRUE(reader->has(name));
      ASSERT_OK(reader->read(name, tensor.shape, values));
      EXPECT_EQ(values, tensor.values);
    }
  }
  EXPECT_FALSE(reader->has("lm_head.weight"));  // tied: the embedding replaces it
}

TEST(CheckpointReader, NamesAbsentTensorsAndOtherShapes) {
  const TestRun run;
  const auto reader = CheckpointReader::open(*run.save(10));
  ASSERT_OK(reader);
  std::vector<float> values(6);
  EXPECT_CORRUPT(reader->read("lm_head.weight", {6}, values), "no tensor 'lm_head.weight'");
  EXPECT_CORRUPT(reader->read("wte.weight", {2, 3}, values), "its shape is [3, 2]");
}

TEST(CheckpointReader, OpensOneFile) {
  const TempFolder folder;
  write_foreign(folder.path() / "any.safetensors", {{"a", 3}});
  const auto reader = CheckpointReader::open(folder.path() / "any.safetensors");
  ASSERT_OK(reader);
  EXPECT_EQ(reader->manifest(), nullptr);
  EXPECT_EQ(read_one(*reader, "a"), 3);
}

// A damaged file and one of another format get different messages.
TEST(CheckpointReader, SaysWhatIsNoSafetensorsFile) {
  const TempFolder folder;
  const auto path = folder.path() / "any.safetensors";
  for (const char* text : {"# Words, and no weights\n", "{\"model_type\": \"gpt2\"}\n",
                           "PK\x03\x04\x50\x4b\x08\x08\x50\x4b\x03\x04"}) {
    write_bytes(path, text);
    EXPECT_CORRUPT(CheckpointReader::open(path), "any.safetensors is not a safetensors file");
  }
  write_foreign(path, {{"a", 3}});
  const std::string right = testing::read_bytes(path);
  std::string wrong = right;
  wrong[7] = 1;
  for (const std::string& bytes :
       {wrong, right.substr(0, 12), right.substr(0, 8), right.substr(0, 3)}) {
    write_bytes(path, bytes);
    EXPECT_CORRUPT(CheckpointReader::open(path), "damaged safetensors file");
  }
}

TEST(CheckpointReader, OpensAFolderWithOneFileUnderAnyName) {
  const TempFolder folder;
  write_foreign(folder.path() / "weights.safetensors", {{"a", 3}});
  write_bytes(folder.path() / "README.md", "words");
  EXPECT_OK(CheckpointReader::open(folder.path()));
  write_foreign(folder.path() / "second.safetensors", {{"b", 3}});
  EXPECT_CORRUPT(CheckpointReader::open(folder.path()), "2 other safetensors files");
  write_foreign(folder.path() / "model.safetensors", {{"c", 4}});
  const auto reader = CheckpointReader::open(folder.path());
  ASSERT_OK(reader);
  EXPECT_TRUE(reader->has("c"));
  EXPECT_FALSE(reader->has("a"));
}

TEST(CheckpointReader, OpensAnIndexedFolderOfLinks) {
  const TempFolder folder;
  write_foreign(folder.path() / "blob1", {{"transformer.a", 1}});
  write_foreign(folder.path() / "blob2", {{"b", 2}});
  std::filesystem::create_symlink("blob1", folder.path() / "m1.safetensors");
  std::filesystem::create_symlink("blob2", folder.path() / "m2.safetensors");
  write_bytes(folder.path() / kIndex,
              R"({"weight_map":{"transformer.a":"m1.safetensors","b":"m2.safetensors"}})");
  const auto reader = CheckpointReader::open(folder.path());
  ASSERT_OK(reader);
  EXPECT_EQ(read_one(*reader, "a"), 1);
  EXPECT_EQ(read_one(*reader, "transformer.a"), 1);
  EXPECT_EQ(read_one(*reader, "transformer.b"), 2);
}

TEST(CheckpointReader, RefusesBadIndexes) {
  const TempFolder folder;
  for (const char* index :
       {"", "[]", "{", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})",
        R"({"weight_map":{"a":"../x.safetensors"}})", R"({"weight_map":{"a":"/etc/passwd"}})",
        R"({"weight_map":{"a":""}})", R"({"weight_map":{"a":"absent.safetensors"}})"}) {
    write_bytes(folder.path() / kIndex, index);
    EXPECT_CORRUPT(CheckpointReader::open(folder.path()), "cannot read");
  }
}

TEST(CheckpointReader, RefusesATensorInTwoFiles) {
  const TempFolder folder;
  write_foreign(folder.path() / "m1.safetensors", {{"a", 1}});
  write_foreign(folder.path() / "m2.safetensors", {{"a", 2}});
  write_bytes(folder.path() / kIndex,
              R"({"weight_map":{"a":"m1.safetensors","b":"m2.safetensors"}})");
  EXPECT_CORRUPT(CheckpointReader::open(folder.path()), "'a' is also in another file");
}

TEST(CheckpointReader, SaysWhatAnEmptyOrAbsentFolderNeeds) {
  const TempFolder folder;
  EXPECT_CORRUPT(CheckpointReader::open(folder.path()), "give a folder checkpoints/step-");
  EXPECT_CORRUPT(CheckpointReader::open(folder.path() / "absent"), "No such file");
}

TEST(CheckpointReader, GarbageNeverOpens) {
  const TempFolder folder;
  const auto path = folder.path() / "model.safetensors";
  EXPECT_TRUE(rc::check([&](std::string bytes) {
    // Half of the inputs get a valid header length, to reach the JSON parser.
    if (*rc::gen::arbitrary<bool>()) {
      const std::uint64_t length = bytes.size() + 1;
      bytes = std::string(reinterpret_cast<const char*>(&length), sizeof length) + "{" + bytes;
    }
    write_bytes(path, bytes);
    RC_ASSERT(!CheckpointReader::open(folder.path()).ok());
  }));
}

}  // namespace
}  // namespace motley

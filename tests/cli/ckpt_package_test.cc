// `motley ckpt export` of a run of a package: the files that the package contains are exported
// too, and missing ones are reported.
#include <fmt/format.h>

#include <cstring>

#include "tests/cli/ckpt_fixture.h"

namespace motley {
namespace {

using ::testing::AllOf;
using testing::ckpt;
using ::testing::HasSubstr;
using testing::Said;
using testing::TempFolder;
using ::testing::UnorderedElementsAre;

constexpr const char* kConfigText = "{\"dtype\":\"bfloat16\",\"model_type\":\"llama\"}\n";
constexpr const char* kConfigSha =
    "cd22f9ada4e47330177f84ffb07abc19309b5f1f5ee657c2996418e8e3992274";
constexpr const char* kTokenizerText = "{\"pieces\":[]}\n";
constexpr const char* kTokenizerSha =
    "c87083fc43a5274b7030c7fb6b20e0b792a6fefc1b65c18f5e542ef7a82c4010";

class CkptPackage : public ::testing::Test {
 protected:
  [[nodiscard]] std::string at(const std::string& name) const {
    return (folder_.path() / name).string();
  }

  // Trains a copy of the package; `keeps`: it contains the model's additional files.
  void train(const std::string& name, bool keeps, const Json& adapter = {}) {
    std::filesystem::copy(fmt::format("{}/{}.motley", MOTLEY_PACKAGES_DIR, name), at("package"),
                          std::filesystem::copy_options::recursive);
    const std::string path = at("package/package.json");
    Json description = Json::parse(testing::read_bytes(path));
    if (keeps) {
      std::filesystem::create_directory(at("package/files"));
      testing::write_bytes(at("package/files/config.json"), kConfigText);
      testing::write_bytes(at("package/files/tokenizer.json"), kTokenizerText);
      description["files"] = Json::array(
          {{{"name", "config.json"}, {"bytes", std::strlen(kConfigText)}, {"sha256", kConfigSha}},
           {{"name", "tokenizer.json"},
            {"bytes", std::strlen(kTokenizerText)},
            {"sha256", kTokenizerSha}}});
    }
    if (!adapter.is_null()) description["adapter"] = adapter;
    testing::write_bytes(path, description.dump());
    config_.model.kind = "package";
    config_.model.path = at("package");
    testing::save_run(at("run"), config_, 10, 2);
  }

  TempFolder folder_;
  Config config_;
};

TEST_F(CkptPackage, HasTheConfigurationAndTheTokenizerThatThePackageKeeps) {
  train("llama-tiny", true);
  const Said said = ckpt({"export", at("run"), "-o", at("out"), "--dtype", "fp16"});
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(testing::names_in(at("out")),
              UnorderedElementsAre("config.json", "model.safetensors", "tokenizer.json"));
  const Json config = Json::parse(testing::read_bytes(at("out/config.json")));
  EXPECT_EQ(config["model_type"], "llama");
  EXPECT_EQ(config["dtype"], "float16") << "of the numbers that were written";
  EXPECT_EQ(testing::read_bytes(at("out/tokenizer.json")), kTokenizerText);
  EXPECT_THAT(said.out, ::testing::Not(HasSubstr("no config.json")));
}

TEST_F(CkptPackage, SaysThatThereIsNoConfigurationAndTakesOneThatIsGiven) {
  train("llama-tiny", false);
  const Said said = ckpt({"export", at("run"), "-o", at("out")});
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("no config.json"), HasSubstr("--config FOLDER")));
  const Said json = ckpt({"export", at("run"), "-o", at("json"), "--json"});
  EXPECT_EQ(Json::parse(json.out)["lacks"].size(), 1U);
  std::filesystem::create_directory(at("theirs"));
  testing::write_bytes(at("theirs/config.json"), kConfigText);
  const Said given = ckpt({"export", at("run"), "-o", at("whole"), "--config", at("theirs")});
  ASSERT_EQ(given.status, 0) << given.err;
  EXPECT_EQ(Json::parse(testing::read_bytes(at("whole/config.json")))["model_type"], "llama");
  EXPECT_THAT(given.out, HasSubstr("no tokenizer"));
  EXPECT_EQ(ckpt({"export", at("run"), "-o", at("none"), "--config", at("run")}).status, 3);
}

TEST_F(CkptPackage, HasWhatTrainingDoesNotMove) {
  train("cnn", false);
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("out"), "--dtype", "bf16"}).status, 0);
  const auto tensors = testing::tensor_bytes_in(at("out"));
  std::string steps = "I64 ";
  const std::int64_t ten = 10;
  steps.append(reinterpret_cast<const char*>(&ten), sizeof ten);
  EXPECT_EQ(tensors.at("1.num_batches_tracked"), steps);
  EXPECT_EQ(tensors.at("5.num_batches_tracked"), steps);
  EXPECT_EQ(tensors.at("1.running_mean").substr(0, 5), "BF16 ");
  testing::write_bytes(at("job.toml"),
                       fmt::format("[model]\nkind = \"package\"\npath = \"{}\"\n", at("package")));
  const Said back = ckpt({"import", at("out"), at("job.toml"), "-o", at("weights")});
  EXPECT_EQ(back.status, 0) << back.err;
}

TEST_F(CkptPackage, HasFrozenWeightsInTheirType) {
  train("adapters-bf16", false);
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("out")}).status, 0);
  const auto stored = testing::tensor_bytes_in(at("package"));
  const auto tensors = testing::tensor_bytes_in(at("out"));
  for (const char* name : {"0.weight", "1.bias", "2.base.weight", "5.weight"}) {
    EXPECT_EQ(stored.at(name).substr(0, 5), "BF16 ") << name;
    EXPECT_EQ(tensors.at(name), stored.at(name)) << name;
  }
  EXPECT_EQ(tensors.at("2.a").substr(0, 4), "F32 ");
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("half"), "--dtype", "fp16"}).status, 0);
  EXPECT_EQ(testing::tensor_bytes_in(at("half")).at("2.base.weight").substr(0, 4), "F16 ");
}

std::vector<float> floats_in(const std::string& tensor) {
  std::vector<float> values((tensor.size() - 4) / sizeof(float));  // behind "F32 "
  std::memcpy(values.data(), tensor.data() + 4, tensor.size() - 4);
  return values;
}

TEST_F(CkptPackage, HasQuantisedWeightsAsTheLayersComputeThem) {
  train("adapters-nf4", false);
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("out")}).status, 0);
  const auto stored = testing::tensor_bytes_in(at("package"));
  const auto tensors = testing::tensor_bytes_in(at("out"));
  EXPECT_FALSE(tensors.contains("motley.base.nf4"));
  const std::vector<float> table = floats_in(stored.at("motley.base.nf4"));
  for (const std::string name : {"2.base.weight", "4.base.weight"}) {
    const std::string codes = stored.at("motley.base." + name + ".codes").substr(3);  // "U8 "
    const std::vector<float> scales = floats_in(stored.at("motley.base." + name + ".scales"));
    const std::vector<float> values = floats_in(tensors.at(name));
    ASSERT_EQ(values.size(), 64U * 66U);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto byte = static_cast<unsigned char>(codes[i / 2]);
      const unsigned code = i % 2 == 0 ? byte >> 4U : byte & 15U;
      const float number = table[2 * (code * 17U)];  // of the byte with this code twice
      ASSERT_EQ(values[i], number * scales[i / 64]) << name << " " << i;
    }
  }
}

TEST_F(CkptPackage, HasQuantisedWeightsInTheTypeOfTheModel) {
  train("adapters-int8", false);
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("out")}).status, 0);
  const auto stored = testing::tensor_bytes_in(at("package"));
  const auto tensors = testing::tensor_bytes_in(at("out"));
  EXPECT_EQ(tensors.at("2.base.weight").substr(0, 4), "F16 ");
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("wide"), "--dtype", "fp32"}).status, 0);
  const auto values = floats_in(testing::tensor_bytes_in(at("wide")).at("2.base.weight"));
  const std::string codes = stored.at("motley.base.2.base.weight.codes").substr(3);  // "I8 "
  const std::vector<float> scales = floats_in(stored.at("motley.base.2.base.weight.scales"));
  ASSERT_EQ(values.size(), 66U * 64U);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], static_cast<float>(static_cast<signed char>(codes[i])) * scales[i / 64]);
  }
}

TEST_F(CkptPackage, WithoutItsPackageIsRefused) {
  train("cnn", false);
  std::filesystem::rename(at("package"), at("elsewhere"));
  const Said said = ckpt({"export", at("run"), "-o", at("out")});
  EXPECT_EQ(said.status, 3);
  EXPECT_THAT(said.err, AllOf(HasSubstr("not a package"), HasSubstr("--package")));
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("out"), "--package", at("elsewhere")}).status, 0);
  const Said other = ckpt({"export", at("run"), "-o", at("other"), "--package",
                           std::string(MOTLEY_PACKAGES_DIR) + "/mlp.motley"});
  EXPECT_EQ(other.status, 3);
  EXPECT_THAT(other.err, HasSubstr("not the trained one"));
}

TEST_F(CkptPackage, AChangedFileIsFound) {
  train("llama-tiny", true);
  testing::write_bytes(at("package/files/tokenizer.json"), "{\"pieces\":{}}\n");
  const Said said = ckpt({"export", at("run"), "-o", at("out")});
  EXPECT_EQ(said.status, 7);
  EXPECT_THAT(said.err, AllOf(HasSubstr("tokenizer.json"), HasSubstr("SHA-256")));
  EXPECT_FALSE(std::filesystem::exists(at("out")));
}

TEST_F(CkptPackage, AnAdapterIsWrittenUnderItsNames) {
  Json names;
  ModelConfig model;
  model.kind = "package";
  model.path = std::string(MOTLEY_PACKAGES_DIR) + "/mlp.motley";
  for (const ParameterSpec& each : testing::parameters_of(*describe_model(model))) {
    names[each.name] = "base_model.model." + each.name;
  }
  train("mlp", false, names);
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("out")}).status, 0);
  EXPECT_THAT(testing::names_in(at("out")), UnorderedElementsAre("adapter_model.safetensors"));
  EXPECT_TRUE(testing::tensor_bytes_in(at("out")).contains("base_model.model.0.weight"));
  ASSERT_EQ(ckpt({"export", at("run"), "-o", at("file"), "--one-file"}).status, 0);
}

}  // namespace
}  // namespace motley

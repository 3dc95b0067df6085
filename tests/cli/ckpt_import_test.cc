// Import of Hugging Face's folders and export back: each tensor is byte-identical.
#include <fmt/format.h>

#include "checkpoint/weight_names.h"
#include "models/spec/initial_weights.h"
#include "tests/cli/ckpt_fixture.h"

namespace motley {
namespace {

using ::testing::AllOf;
using testing::bytes_in;
using testing::ckpt;
using ::testing::Contains;
using testing::ForeignTensor;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Said;
using testing::TempFolder;
using testing::tensor_bytes_in;
using testing::values_of;

struct Layout {
  FloatFormat format;
  int files;
  std::string prefix;  // of the names of the body
  bool tied;
  bool has_head_copy;  // of a tied model
  bool has_buffers;
};

class CkptImport : public ::testing::Test {
 protected:
  // Writes a configuration with this [model] section.
  std::string write_config(const std::string& section) {
    const auto path = folder_.path() / "job.toml";
    testing::write_bytes(path, "[model]\n" + section + "[data]\nkind = \"synthetic\"\n");
    return path.string();
  }

  static std::string gpt2_section(bool tied) {
    return fmt::format(
        "kind = \"gpt2\"\nlayers = 2\nwidth = 32\nheads = 4\ncontext = 16\nvocab = 64\ntied = {}\n",
        tied);
  }

  [[nodiscard]] std::string at(const std::string& name) const {
    return (folder_.path() / name).string();
  }

  // Writes a model in Hugging Face's format; returns those of its tensors that are parameters.
  std::map<std::string, std::string> write_model(const ModelSpec& model,
                                                 const Layout& layout,
                                                 const Json& config) {
    std::vector<ForeignTensor> tensors;
    std::map<std::string, std::string> parameters;
    for (const ParameterSpec& parameter : testing::parameters_of(model)) {
      const bool is_head = parameter.name == "lm_head.weight";
      const std::string bare = bare_weight_name(parameter.name);
      const std::string name = is_head ? parameter.name : layout.prefix + bare;
      const std::string bytes =
          bytes_in(values_of(bare, static_cast<std::size_t>(parameter.count()), 1), layout.format);
      tensors.push_back({name, safetensors_dtype(layout.format), parameter.shape, bytes});
      parameters[bare] = std::string(safetensors_dtype(layout.format)) + " " + bytes;
      if (layout.has_head_copy && tensors.size() == 1) {  // the embedding comes first
        tensors.push_back({"lm_head.weight", tensors[0].dtype, tensors[0].shape, bytes});
      }
    }
    if (layout.has_buffers) {
      tensors.push_back({layout.prefix + "h.0.attn.bias", "U8", {1, 1, 4, 4}, std::string(16, 1)});
      tensors.push_back({layout.prefix + "h.1.attn.masked_bias", "F32", {}, std::string(4, 0)});
      tensors.push_back({layout.prefix + "layers.0.self_attn.rotary_emb.inv_freq",
                         "F32",
                         {2},
                         std::string(8, 1)});
    }
    testing::write_foreign(at("theirs"), tensors, layout.files, config);
    return parameters;
  }

  // Imports and exports the model again; the parameters must be the same.
  void expect_same(const Layout& layout,
                   const ModelConfig& model,
                   const std::string& config,
                   const std::map<std::string, std::string>& parameters) {
    const char* const dtype = layout.format == FloatFormat::kFp32   ? "fp32"
                              : layout.format == FloatFormat::kFp16 ? "fp16"
                                                                    : "bf16";
    for (const char* name : {"ours", "out"}) std::filesystem::remove_all(at(name));
    const Said in = ckpt({"import", at("theirs"), config, "-o", at("ours")});
    ASSERT_EQ(in.status, 0) << in.err;
    const auto ours = CheckpointReader::open(at("ours"))->outline();
    ASSERT_OK(ours);
    EXPECT_OK(check_weights(model, {}, ours->tensors, ours->config, "ours")) << "for init_from";
    const Said out =
        ckpt({"export", at("ours"), "-o", at("out"), "--dtype", dtype, "--max-file", "20KB"});
    ASSERT_EQ(out.status, 0) << out.err;
    std::map<std::string, std::string> exported;
    for (const auto& [name, bytes] : tensor_bytes_in(at("out"))) {
      exported[bare_weight_name(name)] = bytes;
    }
    EXPECT_EQ(exported, parameters);
    const Said said = ckpt({"diff", at("ours"), at("theirs"), "--json"});
    const Json tensors = Json::parse(said.out).at("tensors");
    EXPECT_FALSE(tensors.empty());
    for (const Json& tensor : tensors) EXPECT_EQ(tensor.at("differing"), 0);
  }

  TempFolder folder_;
};

TEST_F(CkptImport, GivesEachTensorOfAGpt2BackToTheByte) {
  for (const auto format : {FloatFormat::kFp32, FloatFormat::kFp16, FloatFormat::kBf16}) {
    for (const Layout& layout : {Layout{format, 1, "", true, false, false},
                                 Layout{format, 3, "transformer.", true, true, true},
                                 Layout{format, 2, "transformer.", false, false, true}}) {
      SCOPED_TRACE(fmt::format("{} {} {}", safetensors_dtype(format), layout.files, layout.tied));
      std::filesystem::remove_all(at("theirs"));
      ModelConfig model = testing::small_config().model;
      model.tied = layout.tied;
      const auto parameters =
          write_model(*describe_model(model), layout, huggingface_config(model));
      expect_same(layout, model, write_config(gpt2_section(layout.tied)), parameters);
      EXPECT_EQ(Json::parse(testing::read_bytes(at("out") + "/config.json"))["torch_dtype"],
                torch_dtype(format));
    }
  }
}

TEST_F(CkptImport, GivesEachTensorOfALlamaBackToTheByte) {
  const std::string package = MOTLEY_PACKAGES_DIR "/llama-tiny.motley";
  ModelConfig model;
  model.kind = "package";
  model.path = package;
  const ModelSpec spec = *describe_model(model);
  const std::string config =
      write_config(fmt::format("kind = \"package\"\npath = \"{}\"\n", package));
  for (const auto format : {FloatFormat::kFp32, FloatFormat::kFp16, FloatFormat::kBf16}) {
    for (const Layout& layout : {Layout{format, 1, "model.", false, false, false},
                                 Layout{format, 3, "", false, false, true}}) {
      std::filesystem::remove_all(at("theirs"));
      const auto parameters = write_model(spec, layout, Json{{"model_type", "llama"}});
      testing::write_bytes(folder_.path() / "theirs" / "tokenizer.model", "pieces");
      expect_same(layout, model, config, parameters);
      EXPECT_EQ(testing::read_bytes(folder_.path() / "out" / "tokenizer.model"), "pieces");
      EXPECT_EQ(Json::parse(testing::read_bytes(at("out") + "/config.json"))["model_type"],
                "llama");
    }
  }
}

// A GPT-2 with PyTorch's Linear, whose weights are transposed.
TEST_F(CkptImport, TransposesLinearWeights) {
  const ModelConfig model = testing::small_config().model;
  std::vector<ForeignTensor> tensors;
  std::map<std::string, std::vector<float>> wanted;
  for (const ParameterSpec& parameter : testing::parameters_of(*describe_model(model))) {
    const auto values = values_of(parameter.name, static_cast<std::size_t>(parameter.count()), 1);
    wanted[parameter.name] = values;
    const bool is_linear =
        parameter.shape.size() == 2 && parameter.name.find(".c_") != std::string::npos;
    std::vector<float> stored = values;
    std::vector<std::int64_t> shape = parameter.shape;
    if (is_linear) {
      const auto rows = static_cast<std::size_t>(shape[0]);
      const auto columns = static_cast<std::size_t>(shape[1]);
      for (std::size_t i = 0; i < values.size(); ++i) {
        stored[i % columns * rows + i / columns] = values[i];
      }
      std::ranges::reverse(shape);
    }
    tensors.push_back({parameter.name, "F32", shape, bytes_in(stored, FloatFormat::kFp32)});
  }
  testing::write_foreign(at("theirs"), tensors, 1, huggingface_config(model));
  const Said said =
      ckpt({"import", at("theirs"), write_config(gpt2_section(true)), "-o", at("ours")});
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("8 of them transposed"));
  const auto found = tensor_bytes_in(at("ours"));
  for (const auto& [name, values] : wanted) {
    EXPECT_EQ(found.at(name), "F32 " + bytes_in(values, FloatFormat::kFp32)) << name;
  }
}

TEST_F(CkptImport, RefusesAHeadThatIsNotTheEmbeddingItIsTiedTo) {
  const ModelConfig model = testing::small_config().model;
  (void)write_model(*describe_model(model), {FloatFormat::kFp32, 1, "", true, true, false},
                    huggingface_config(model));
  const auto path = folder_.path() / "theirs" / "model.safetensors";
  std::string bytes = testing::read_bytes(path);
  // The embedding of 64 times 32 values comes first, and the head follows it.
  const std::size_t header = *reinterpret_cast<const std::uint64_t*>(bytes.data());
  bytes[8 + header + 64 * 32 * 4 + 5] ^= 1;
  testing::write_bytes(path, bytes);
  const Said said =
      ckpt({"import", at("theirs"), write_config(gpt2_section(true)), "-o", at("ours")});
  EXPECT_EQ(said.status, 3);
  EXPECT_THAT(said.err, HasSubstr("1 of the 2048 values of 'lm_head.weight' are others"));
  EXPECT_FALSE(std::filesystem::exists(at("ours")));
}

TEST_F(CkptImport, SaysInOneErrorWhatDoesNotFit) {
  testing::write_foreign(
      at("theirs"),
      {{"wte.weight", "F32", {1, 2}, std::string(8, 0)}, {"odd", "F32", {1}, std::string(4, 0)}}, 1,
      Json());
  const Said said =
      ckpt({"import", at("theirs"), write_config(gpt2_section(true)), "-o", at("ours")});
  EXPECT_EQ(said.status, 3);
  EXPECT_THAT(
      said.err,
      AllOf(HasSubstr("'wte.weight' is [64, 32] for this configuration, and there [1, 2]"),
            HasSubstr("'wpe.weight' [16, 32] is missing"), HasSubstr("and 24 more are missing"),
            HasSubstr("'odd' [1] is not in this model")));
  EXPECT_THAT(testing::names_in(folder_.path()), Not(Contains("ours")));
}

}  // namespace
}  // namespace motley

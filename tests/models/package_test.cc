// Packages that read_package and parse_package accept or refuse, and their errors.
#include "models/package/package.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"
#include "models/package/operations.h"
#include "tests/fuzz/package_laws.h"
#include "tests/models/replaced_text.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The error of the valid package with a change.
Error error_with(const std::string& old, const std::string& with) {
  const auto package = parse_package(replaced(right_package(), old, with), "package.json");
  EXPECT_FALSE(package.ok()) << old << " -> " << with;
  return package.ok() ? Error{} : package.error();
}

std::string cause_with(const std::string& old, const std::string& with) {
  const Error error = error_with(old, with);
  EXPECT_EQ(error.code, ErrorCode::kCorrupt) << describe(error);
  return error.cause;
}

TEST(ParsePackage, ReadsWhatIsRight) {
  const Package package = parse_package(right_package(), "package.json").value();
  ASSERT_EQ(package.layers.size(), 2U);
  EXPECT_EQ(package.layers[0].name, "body");
  EXPECT_EQ(package.layers[0].statistics[0].momentum, 0.1);
  EXPECT_EQ(package.inputs_of(1), package.layers[0].outputs);
  const TensorSpec input{Dtype::kFloat32, {4}};
  EXPECT_EQ(package.inputs, (std::vector<SampleInput>{{"", input, std::nullopt}}));
  EXPECT_EQ(package.inputs_of(0), (std::vector{BoundarySpec{input, /*gradient=*/false}}));
  EXPECT_EQ(package.ignored, -1);
  EXPECT_NE(package.layers[0].signature, package.layers[1].signature);
  const Graph& forward = package.graphs[0].forward;
  EXPECT_EQ(forward.nodes[3].operation, kDropoutMask);
  EXPECT_EQ(forward.given({Role::kObserved, 0}), ValueId{9});
  EXPECT_EQ(forward.count_given(Role::kSaved), 2);
  EXPECT_FALSE(forward.given({Role::kLoss, 0}));
}

// Packages of earlier versions do not have them.
TEST(ParsePackage, ReadsTheOperationsOfBackwardWhereTheyAreThere) {
  const Package before = parse_package(right_package(), "package.json").value();
  EXPECT_FALSE(before.layers[0].input_part_flops_per_sample);
  EXPECT_FALSE(before.layers[0].weight_part_flops_per_sample);
  const std::string flops = "\"flops_per_sample\": 24";
  const Package now = parse_package(replaced(right_package(), flops,
                                             flops + ", \"input_part_flops_per_sample\": 0, "
                                                     "\"weight_part_flops_per_sample\": 12.5"),
                                    "package.json")
                          .value();
  EXPECT_EQ(now.layers[0].input_part_flops_per_sample, 0);
  EXPECT_EQ(now.layers[0].weight_part_flops_per_sample, 12.5);
  EXPECT_EQ(now.layers[0].signature, before.layers[0].signature);
  EXPECT_THAT(cause_with(flops, flops + ", \"weight_part_flops_per_sample\": -1"),
              HasSubstr("it is -1; from 0"));
}

TEST(ParsePackage, LetsGoOfValuesBehindTheirLastReader) {
  const Package package = parse_package(right_package(), "package.json").value();
  const Graph& forward = package.graphs[0].forward;
  EXPECT_THAT(forward.nodes[0].dies, ElementsAre(ValueId{1}));  // the weight, transposed
  EXPECT_THAT(forward.nodes[1].dies, ElementsAre(ValueId{2}, ValueId{4}));
  EXPECT_THAT(forward.nodes[5].dies, ElementsAre(ValueId{6}));
  EXPECT_THAT(forward.unread, IsEmpty());
  const Graph& head = package.graphs[1].evaluate;
  EXPECT_THAT(head.nodes[4].dies, ElementsAre(ValueId{7}, ValueId{9}));  // an unused result
}

TEST(ParsePackage, SignsEqualLayersEqually) {
  const auto signature = [](const std::string& text, std::size_t layer) {
    return parse_package(text, "package.json").value().layers[layer].signature;
  };
  const std::string right = right_package();
  const std::string renamed =
      replaced(right, "\"name\": \"body.weight\"", "\"name\": \"b.weight\"");
  EXPECT_EQ(signature(right, 0), signature(renamed, 0));
  EXPECT_NE(signature(right, 0), signature(replaced(right, "0.25, 3", "0.5, 3"), 0));
  EXPECT_EQ(signature(right, 1), signature(replaced(right, "0.25, 3", "0.5, 3"), 1));
  EXPECT_NE(signature(right, 0), signature(replaced(right, "[3, 4]", "[4, 3]"), 0));
}

TEST(ParsePackage, NamesTheOperationThatIsNotAllowed) {
  const Error error = error_with("aten::addmm", "aten::add_.Tensor");
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.cause, HasSubstr("layer 'body'"));
  EXPECT_THAT(error.cause, HasSubstr("aten::add_.Tensor"));
  EXPECT_THAT(error.what, HasSubstr("package.json:"));
}

TEST(ParsePackage, RefusesKernelsThatBreakTheirPromise) {
  const std::string mul = R"("aten::mul.Tensor", "args": [{"value": 5}, {"value": 3}])";
  const auto norm = [](const std::string& statistics, const std::string& training) {
    return R"("aten::native_batch_norm", "args": [{"value": 5}, null, null, )" + statistics + ", " +
           training + ", 0.1, 1e-5]";
  };
  const std::string given = "{\"value\": 3}, {\"value\": 3}";
  EXPECT_THAT(cause_with(mul, norm(given, "true")), HasSubstr("write to its running statistics"));
  EXPECT_THAT(cause_with(mul, norm("null, null", "false")), HasSubstr("needs running statistics"));
  EXPECT_TRUE(parse_package(replaced(right_package(), mul, norm(given, "false")), "p.json").ok());
  EXPECT_TRUE(
      parse_package(replaced(right_package(), mul, norm("null, null", "true")), "p.json").ok());
  EXPECT_THAT(cause_with(mul, R"("aten::native_batch_norm_backward", "args": [{"value": 5},
              {"value": 5}, null, null, null, {"value": 3}, {"value": 3}, false, 1e-5,
              [true, true, true]])"),
              HasSubstr("its statistics are missing"));
  EXPECT_THAT(cause_with(mul, R"("aten::embedding_dense_backward",
              "args": [{"value": 5}, {"value": 3}, 7, -1, true])"),
              HasSubstr("scale_grad_by_freq"));
  EXPECT_THAT(cause_with(R"("kwargs": {"beta": 1})", R"("kwargs": {"device": {"text": "cuda"}})"),
              HasSubstr("set by the worker"));
}

TEST(ParsePackage, RefusesADropoutThatIsNone) {
  for (const char* arguments :
       {"1.5, 3", "-0.5, 3", "0.25, 256", "0.25, -1", "0.25", "0.25, 3, 1"}) {
    EXPECT_THAT(cause_with("0.25, 3", arguments), HasSubstr("a place from 0 to 255")) << arguments;
  }
}

TEST(ParsePackage, TakesDrawsAndRefusesThoseThatAreNone) {
  const std::string mask = R"("motley::dropout_mask", "args": [{"value": 6}, 0.25, 3])";
  for (const char* draw :
       {R"("motley::uniform", "args": [[{"batch": [0, 1]}, 3], 3])",
        R"("motley::normal", "args": [[], 0])", R"("motley::exponential", "args": [[3], 255])",
        R"("motley::integers", "args": [[{"batch": [0, 1]}], -2, 5, 1])"}) {
    EXPECT_TRUE(parse_package(replaced(right_package(), mask, draw), "p.json").ok()) << draw;
  }
  for (const char* draw : {R"("motley::uniform", "args": [[3], 256])",
                           R"("motley::normal", "args": [{"value": 6}, 0])",
                           R"("motley::integers", "args": [[3], 5, 5, 1])"}) {
    EXPECT_THAT(cause_with(mask, draw), HasSubstr("a place from 0 to 255")) << draw;
  }
  const Error unknown = error_with(mask, R"("motley::cauchy", "args": [[3], 0])");
  EXPECT_EQ(unknown.code, ErrorCode::kConfig) << describe(unknown);
  EXPECT_THAT(unknown.cause, HasSubstr("motley::cauchy"));
}

TEST(ParsePackage, RefusesValuesThatAreNotThere) {
  EXPECT_THAT(cause_with("[{\"value\": 1}]", "[{\"value\": 4}]"), HasSubstr("earlier value"));
  EXPECT_THAT(cause_with("[\"output:0\", 8]", "[\"output:0\", 10]"), HasSubstr("earlier value"));
  EXPECT_THAT(cause_with("{\"values\": [0, 1]}", "{\"values\": [0, 9]}"), HasSubstr("values"));
}

TEST(ParsePackage, RefusesRolesThatDoNotFit) {
  EXPECT_THAT(cause_with("\"parameter:1\", \"constant:0\"", "\"parameter:0\", \"constant:0\""),
              HasSubstr("duplicate "));
  EXPECT_THAT(cause_with("\"parameter:1\", \"constant:0\"", "\"statistic:0\", \"constant:0\""),
              HasSubstr("is not allowed here"));
  EXPECT_THAT(cause_with("\"parameter:1\", \"constant:0\"", "\"parameter:1\", \"constant:1\""),
              HasSubstr("it has 1 constants"));
  EXPECT_THAT(cause_with("[\"parameter_grad:0\", 3]", "[\"parameter_grad:1\", 3]"),
              HasSubstr("parameter_grad:1"));
  EXPECT_THAT(cause_with(", [\"observed:0\", 9]", ""), HasSubstr("statistic:0"));
  EXPECT_THAT(cause_with("\"queued:0\", \"saved:0\"", "\"queued:1\", \"saved:0\""),
              HasSubstr("queued:1"));
  EXPECT_THAT(cause_with("[\"saved:1\", 7], [\"observed", "[\"saved:2\", 7], [\"observed"),
              HasSubstr("saved:1 is missing"));
  EXPECT_THAT(cause_with("\"grad:0\"", "\"grad:2\""), HasSubstr("grad:2"));
  EXPECT_THAT(cause_with("[\"input_grad:0\", 8], ", ""), HasSubstr("input_grad:0 is missing"));
  EXPECT_THAT(cause_with(", [\"input_grad:1\", 9]", ""), HasSubstr("input_grad:1 is missing"));
  EXPECT_THAT(cause_with("[\"loss:0\", 8], ", ""), HasSubstr("loss is given 0 times"));
  EXPECT_THAT(cause_with("\"input:1\"", "\"input:01\""), HasSubstr("ROLE:INDEX"));
}

TEST(ParsePackage, RefusesLayersThatDoNotFit) {
  EXPECT_THAT(cause_with(", {\"type\": \"float32\", \"shape\": [4]}]", "]"),
              HasSubstr("does not match layer 'body'"));
  EXPECT_THAT(
      cause_with("\"outputs\": []", "\"outputs\": [{\"type\": \"float32\", \"shape\": []}]"),
      HasSubstr("and the last none"));
  EXPECT_THAT(cause_with("\"name\": \"head\"", "\"name\": \"body\""), HasSubstr("duplicate name"));
  EXPECT_THAT(cause_with("head.weight", "body.weight"), HasSubstr("duplicate name 'body.weight'"));
  EXPECT_THAT(cause_with("\"shape\": [2, 7], \"decayed\": true, \"tied\": false",
                         "\"shape\": [2, 7], \"decayed\": true, \"tied\": true"),
              HasSubstr("its tied parameter"));
  EXPECT_THAT(cause_with("\"graph\": 1", "\"graph\": 0"), HasSubstr("shares its graph"));
}

TEST(ParsePackage, RefusesNumbersBeyondTheLimits) {
  EXPECT_THAT(cause_with("\"shape\": [2, 7]", "\"shape\": [1099511627776, 2]"),
              HasSubstr("elements at most"));
  EXPECT_THAT(cause_with("\"shape\": [2, 7]", "\"shape\": [0]"), HasSubstr("at least 1"));
  EXPECT_THAT(cause_with("\"shape\": [2, 7]", "\"shape\": [1,1,1,1,1,1,1,1,1]"),
              HasSubstr("at most 8"));
  EXPECT_THAT(cause_with("\"results\": 2", "\"results\": 20000"), HasSubstr("20000"));
  EXPECT_THAT(cause_with("\"input_limit\": 0", "\"input_limit\": 5"), HasSubstr("5"));
  EXPECT_THAT(cause_with("\"ignored\": -1", "\"ignored\": 18446744073709551615"),
              HasSubstr("expected"));
}

TEST(ParsePackage, RefusesKeysThatItDoesNotKnow) {
  EXPECT_THAT(cause_with("\"unit\":", "\"pickle\": 1, \"unit\":"),
              HasSubstr("unknown key 'pickle'"));
  EXPECT_THAT(cause_with("\"tied\": false}", "\"tied\": false, \"x\": 1}"), HasSubstr("'x'"));
  EXPECT_THAT(cause_with("\"results\": 1}", "\"results\": 1, \"x\": 1}"), HasSubstr("'x'"));
}

TEST(ParsePackage, OfAnotherVersionIsAMatterOfConfiguration) {
  const Error error = error_with("\"version\": 1", "\"version\": 4");
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.cause, HasSubstr("this program reads 1 to 3"));
}

// Computed by another program.
std::string sha256_of(const std::filesystem::path& path) {
  FILE* output = ::popen(("sha256sum < '" + path.string() + "'").c_str(), "r");
  std::array<char, 65> digits{};
  const bool is_read = std::fread(digits.data(), 64, 1, output) == 1;
  return ::pclose(output) == 0 && is_read ? digits.data() : "";
}

class PackageFolder : public testing::Test {
 protected:
  PackageFolder() {
    folder_ = std::filesystem::temp_directory_path() /
              ("motley-package-test-" + std::to_string(::getpid()));
    reset();
  }

  void reset() const {
    std::filesystem::remove_all(folder_);
    std::filesystem::copy(MOTLEY_PACKAGES_DIR "/mlp.motley", folder_,
                          std::filesystem::copy_options::recursive);
  }

  ~PackageFolder() override { std::filesystem::remove_all(folder_); }

  void flip_last_byte() const {
    std::fstream file(folder_ / "weights.safetensors", std::ios::in | std::ios::out);
    file.seekg(-1, std::ios::end);
    const int byte = file.get();
    file.seekp(-1, std::ios::end);
    file.put(static_cast<char>(byte ^ 1));
  }

  [[nodiscard]] Error error() const {
    const auto package = read_package(folder_);
    EXPECT_FALSE(package.ok());
    return package.ok() ? Error{} : package.error();
  }

  std::filesystem::path folder_;
};

TEST_F(PackageFolder, IsReadAndVerified) {
  const auto package = read_package(folder_);
  ASSERT_TRUE(package.ok()) << describe(package.error());
  EXPECT_TRUE(verify_package(**package).ok());
  EXPECT_EQ((*package)->hash.size(), 32U);
  const FolderFingerprint fingerprint = (*package)->fingerprint();
  EXPECT_TRUE(fingerprint.folder.is_absolute());
  EXPECT_EQ(fingerprint.small_sha256, sha256_of(folder_ / fingerprint.small_file));
  EXPECT_EQ(fingerprint.large_bytes, std::filesystem::file_size(folder_ / fingerprint.large_file));
}

TEST_F(PackageFolder, WithoutADescriptionIsNone) {
  std::filesystem::remove(folder_ / kPackageFileName);
  EXPECT_EQ(error().code, ErrorCode::kConfig);
  EXPECT_THAT(error().what, HasSubstr("not a package"));
}

TEST_F(PackageFolder, WithAChangedByteIsFoundByItsHash) {
  flip_last_byte();
  const auto package = read_package(folder_);
  ASSERT_TRUE(package.ok()) << describe(package.error());
  const auto verified = verify_package(**package);
  ASSERT_FALSE(verified.ok());
  EXPECT_EQ(verified.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(verified.error().cause, HasSubstr("SHA-256"));
}

TEST_F(PackageFolder, WithWeightsOfAnotherSizeIsDamaged) {
  std::ofstream(folder_ / "weights.safetensors", std::ios::app) << "x";
  EXPECT_EQ(error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(error().cause, HasSubstr("bytes"));
}

TEST_F(PackageFolder, WithWeightsOfAnotherModelIsDamaged) {
  std::ifstream file(folder_ / kPackageFileName);
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::ofstream(folder_ / kPackageFileName) << replaced(text, "\"0.weight\"", "\"9.weight\"");
  EXPECT_EQ(error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(error().cause, HasSubstr("lacks tensor '9.weight'"));
}

// A package in which the values of 0.weight are stored in `dtype`, of two bytes.
class PackageOfTwoBytes : public PackageFolder {
 protected:
  void store(const std::string& dtype) const {
    const std::filesystem::path path = folder_ / "weights.safetensors";
    std::vector<TensorOutline> outlines;
    std::vector<std::byte> bytes;
    {
      const SafetensorsFile file = *SafetensorsFile::open(path);
      for (const auto& [name, entry] : file.entries()) {
        const bool is_changed = name == "0.weight";
        outlines.push_back({name, is_changed ? dtype : entry.dtype, entry.shape});
        std::vector<std::byte> values(entry.end - entry.begin);
        ASSERT_TRUE(file.read_bytes(name, entry.dtype, entry.shape, values).ok());
        if (is_changed) values.resize(values.size() / 2);
        bytes.insert(bytes.end(), values.begin(), values.end());
      }
    }
    SafetensorsWriter writer = *SafetensorsWriter::create(path, outlines, {});
    ASSERT_TRUE(writer.append(bytes).ok());
    ASSERT_TRUE(writer.close().ok());
    std::ifstream file(folder_ / kPackageFileName);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::ofstream(folder_ / kPackageFileName) << replaced(
        text, "\"bytes\":2564", "\"bytes\":" + std::to_string(std::filesystem::file_size(path)));
  }
};

TEST_F(PackageOfTwoBytes, IsReadWhereItsTypeWidensExactly) {
  for (const char* dtype : {"BF16", "F16"}) {
    reset();
    store(dtype);
    const auto package = read_package(folder_);
    EXPECT_TRUE(package.ok()) << dtype << (package.ok() ? "" : describe(package.error()));
  }
}

TEST_F(PackageOfTwoBytes, IsRefusedInAnotherType) {
  store("I16");
  EXPECT_EQ(error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(error().cause, HasSubstr("tensor '0.weight' is I16"));
}

constexpr const char* kModelConfigText = "{\"dtype\":\"bfloat16\",\"model_type\":\"llama\"}\n";

// A package that contains additional files.
class PackageWithFiles : public PackageFolder {
 protected:
  PackageWithFiles() {
    std::ifstream file(folder_ / kPackageFileName);
    text_.assign(std::istreambuf_iterator<char>(file), {});
    keep("config.json", kModelConfigText,
         "cd22f9ada4e47330177f84ffb07abc19309b5f1f5ee657c2996418e8e3992274");
  }

  void keep(const std::string& name, const std::string& content, const std::string& sha256) const {
    std::filesystem::create_directories(folder_ / "files");
    std::ofstream(folder_ / "files" / name) << content;
    std::ofstream(folder_ / kPackageFileName) << replaced(
        text_, "{",
        "{\"files\":[{\"name\":\"" + name + "\",\"bytes\":" + std::to_string(content.size()) +
            ",\"sha256\":\"" + sha256 + "\"}],");
  }

  std::string text_;
};

TEST_F(PackageWithFiles, HasItsConfigurationAndVerifiesAllOfThem) {
  const auto package = read_package(folder_);
  ASSERT_TRUE(package.ok()) << describe(package.error());
  EXPECT_EQ((*package)->model_config, kModelConfigText);
  EXPECT_TRUE(verify_package(**package).ok());
  keep("vocab.txt", "changed since", std::string(64, '0'));
  const auto other = read_package(folder_);
  ASSERT_TRUE(other.ok()) << "only the configuration is read at once";
  EXPECT_THAT(verify_package(**other).error().cause, HasSubstr("SHA-256"));
}

TEST_F(PackageWithFiles, WithAnotherConfigurationIsDamaged) {
  std::ofstream(folder_ / "files" / "config.json") << "{}";
  EXPECT_EQ(error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(error().cause, HasSubstr("bytes"));
  std::filesystem::remove(folder_ / "files" / "config.json");
  std::filesystem::create_symlink(folder_ / kPackageFileName, folder_ / "files" / "config.json");
  EXPECT_EQ(error().code, ErrorCode::kCorrupt);
}

TEST(Package, KeepsNoFilesThatWouldLeaveTheirFolderOrRun) {
  const auto with_name = [](const std::string& name) {
    return "{\"files\": [{\"name\": \"" + name + "\", \"bytes\": 0, \"sha256\": \"" +
           std::string(64, '0') + "\"}],";
  };
  for (const char* name :
       {"", "../config.json", "/etc/x.json", "a/b.json", "a\\\\b.json", ".hidden.json", "model.py",
        "weights.bin", "model.safetensors.index.json", "manifest.json", "-o.json", "é.json"}) {
    EXPECT_THAT(cause_with("{", with_name(name)), HasSubstr("not the name of a model file"))
        << name;
  }
  EXPECT_TRUE(parse_package(replaced(right_package(), "{", with_name("vocab.txt")), "p").ok());
  EXPECT_THAT(cause_with("{", "{\"adapter\": {\"nothing\": \"x\"},"),
              HasSubstr("exactly the trained parameters"));
}

}  // namespace
}  // namespace motley

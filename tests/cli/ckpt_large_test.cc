// Files over 4 GiB, a tensor of more than 2^31 values, and a model ten times as large as the
// command's memory limit. The files are sparse: unwritten bytes are zeros. The large model takes
// about two minutes and 13 GB of disk, so only scripts/large-checkpoint runs it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "base/system/files.h"
#include "checkpoint/safetensors_header.h"
#include "tests/cli/ckpt_fixture.h"

namespace motley {
namespace {

using testing::ckpt;
using testing::Said;
using testing::TempFolder;

using Places = std::map<std::uint64_t, float>;  // positions of a tensor's non-zero values

Config config_of(int vocab) {
  Config config;
  config.model.layers = 1;
  config.model.width = 1024;
  config.model.heads = 4;
  config.model.context = 16;
  config.model.vocab = vocab;
  return config;
}

std::uint64_t embedding_values(int vocab) {
  return static_cast<std::uint64_t>(vocab) * 1024;
}

// Positions at which a 32-bit count would overflow, and the last ones.
Places checked_places(std::uint64_t values) {
  Places places = {{0, 0.5F}, {values - 1, -1.5F}, {values - 2, 2.5F}};
  for (const std::uint64_t place : {std::uint64_t{1} << 30, std::uint64_t{1} << 31}) {
    if (place + 1 < values) places[place] = 3.5F;
  }
  return places;
}

void put(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
  ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
            static_cast<ssize_t>(bytes.size()));
}

// Writes a file whose first tensor has non-zero values only at `places`; the other tensors are
// zeros. Returns its manifest entry.
WrittenFile write_sparse(const std::filesystem::path& path,
                         const std::vector<TensorOutline>& tensors,
                         const Places& places) {
  const std::string header = format_safetensors_header(tensors, {{"format", "pt"}});
  const std::uint64_t header_bytes = header.size();
  WrittenFile written{.name = path.filename().string(), .bytes = 8 + header_bytes};
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  put(fd, 0, std::as_bytes(std::span(&header_bytes, 1)));
  put(fd, 8, std::as_bytes(std::span(header)));
  for (const auto& [place, value] : places) {
    put(fd, 8 + header_bytes + place * 4, std::as_bytes(std::span(&value, 1)));
  }
  Hasher128 all;
  all.add(std::as_bytes(std::span(&header_bytes, 1)));
  all.add(header);
  for (const TensorOutline& tensor : tensors) {
    const std::uint64_t bytes = tensor_bytes(tensor);
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(written.bytes + bytes)), 0);
    Hasher128 one;
    std::vector<std::byte> block(1 << 20);
    for (std::uint64_t done = 0; done < bytes; done += block.size()) {
      block.resize(std::min<std::uint64_t>(block.size(), bytes - done));
      EXPECT_EQ(::pread(fd, block.data(), block.size(), static_cast<off_t>(written.bytes + done)),
                static_cast<ssize_t>(block.size()));
      one.add(block);
      all.add(block);
    }
    written.bytes += bytes;
    written.tensor_hashes[tensor.name] = one.hex();
  }
  ::close(fd);
  written.hash = all.hex();
  return written;
}

// Writes a checkpoint of a model with a large embedding; its optimizer has moments of one bias
// only.
void write_sparse_checkpoint(const std::filesystem::path& folder, int vocab) {
  std::filesystem::create_directories(folder);
  const Config config = config_of(vocab);
  const ModelSpec model = *describe_model(config.model);
  std::vector<TensorOutline> tensors;
  for (const ParameterSpec& parameter : testing::parameters_of(model)) {
    tensors.push_back({parameter.name, "F32", parameter.shape});
  }
  Manifest manifest{.state = {.step = 5,
                              .model_hash = model.hash(),
                              .model_family = "gpt2",
                              .optimizer = "adamw"},
                    .config = config_to_json(config)};
  manifest.files.push_back(write_sparse(folder / "model-00001-of-00001.safetensors", tensors,
                                        checked_places(embedding_values(vocab))));
  manifest.parameter_hash = parameter_hash(manifest.files[0].tensor_hashes);
  manifest.files.push_back(write_sparse(folder / "optimizer-00001-of-00001.safetensors",
                                        {{"exp_avg/ln_f.bias", "F32", {1024}}}, {{3, 1.0F}}));
  EXPECT_OK(write_file_atomic(folder / "manifest.json", format_manifest(manifest)));
}

void expect_values(const std::filesystem::path& path, std::uint64_t values) {
  const auto reader = CheckpointReader::open(path);
  ASSERT_OK(reader);
  const auto name = reader->stored_name("wte.weight");
  ASSERT_TRUE(name);
  const Places places = checked_places(values);
  for (const auto& [place, value] : places) {
    for (std::uint64_t at = place == 0 ? 0 : place - 1; at <= place + 1 && at < values; ++at) {
      std::vector<float> found(1);
      ASSERT_OK(reader->read_part(*name, at, found));
      EXPECT_EQ(found[0], places.contains(at) ? places.at(at) : 0) << at;
    }
  }
}

// Runs every command that a user may apply to it.
void use_checkpoint(const TempFolder& folder, int vocab) {
  const auto at = [&](const char* name) { return (folder.path() / name).string(); };
  const std::uint64_t values = embedding_values(vocab);
  write_sparse_checkpoint(at("old"), vocab);
  const Said verified = ckpt({"verify", at("old")});
  ASSERT_EQ(verified.status, 0) << verified.err;
  const Said half = ckpt({"export", at("old"), "-o", at("half"), "--dtype", "bf16", "--one-file"});
  ASSERT_EQ(half.status, 0) << half.err;
  EXPECT_GT(std::filesystem::file_size(at("half")), values * 2);
  expect_values(at("half"), values);
  EXPECT_EQ(
      Json::parse(ckpt({"diff", at("old"), at("half"), "--json"}).out)["tensors"][0]["differing"],
      0);
  std::filesystem::remove(at("half"));
  const Said cut = ckpt({"reshard", at("old"), "--files", "2", "-o", at("new")});
  ASSERT_EQ(cut.status, 0) << cut.err;
  EXPECT_EQ(ckpt({"verify", at("new")}).status, 0);
  expect_values(at("new"), values);

  // Changes only the last value.
  const auto other = folder.path() / "other.safetensors";
  Places places = checked_places(values);
  places[values - 1] = -1.75F;
  (void)write_sparse(other, {{"wte.weight", "F32", {vocab, 1024}}}, places);
  const Json json = Json::parse(ckpt({"diff", at("old"), other.string(), "--json"}).out);
  EXPECT_EQ(json["tensors"][0]["differing"], 1);
  EXPECT_EQ(json["tensors"][0]["largest"], 0.25);
}

TEST(LargeCheckpoint, OfSeveralPiecesIsUsed) {
  const TempFolder folder;
  use_checkpoint(folder, 5001);
}

// Takes minutes and 13 GB of disk space; run by scripts/large-checkpoint.
TEST(LargeCheckpoint, DISABLED_OfMoreThan2To31ValuesIsUsed) {
  const TempFolder folder;
  use_checkpoint(folder, (1 << 21) + 1);
}

// Private writable memory of the process that no file backs.
std::uint64_t data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == "VmData:" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

// Exits with 0 if the command succeeds with a tenth of the model's bytes.
void run_in_a_tenth(const std::vector<std::string>& words, std::uint64_t model_bytes) {
  const std::uint64_t allowed = data_bytes() + model_bytes / 10;
  const rlimit limit{allowed, allowed};
  int status = ::setrlimit(RLIMIT_DATA, &limit) == 0 ? 0 : 99;
  try {
    if (status == 0) status = ckpt(words).status;
  } catch (const std::bad_alloc&) {
    status = 98;
  }
  std::_Exit(status);
}

TEST(LargeCheckpointDeathTest, NeedsATenthOfItsSizeAsMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own memory counts too";
#endif
  const TempFolder folder;
  constexpr int kVocab = 61'000;
  const auto at = [&](const char* name) { return (folder.path() / name).string(); };
  write_sparse_checkpoint(at("old"), kVocab);
  const std::uint64_t bytes = embedding_values(kVocab) * 4;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"export", at("old"), "-o", at("half"), "--dtype", "fp16"},
        {"reshard", at("old"), "--files", "3", "-o", at("new")},
        {"verify", at("old")},
        {"diff", at("old"), at("old"), "--optimizer"}}) {
    EXPECT_EXIT(run_in_a_tenth(words, bytes), ::testing::ExitedWithCode(0), "") << words[0];
    std::filesystem::remove_all(at("half"));
  }
}

}  // namespace
}  // namespace motley

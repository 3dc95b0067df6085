// A temporary folder with small data files, and helpers to open and read them.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/source.h"

namespace motley {

// Removed with its contents by the destructor.
class DataFolder {
 public:
  DataFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "motley-data-XXXXXX").string();
    const char* made = ::mkdtemp(pattern.data());
    EXPECT_NE(made, nullptr) << pattern;
    root_ = pattern;
  }

  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;

  ~DataFolder() { std::filesystem::remove_all(root_); }

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

  // Returns the path of the new file.
  std::string write(const std::string& name, const std::string& bytes) const {
    const auto path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }

 private:
  std::filesystem::path root_;
};

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline DataConfig data_config(const std::string& kind,
                              const std::string& path,
                              double holdout = 0.0) {
  DataConfig config;
  config.kind = kind;
  config.path = path;
  config.holdout = holdout;
  return config;
}

inline ModelConfig model_config(int context, int vocab = 256) {
  ModelConfig config;
  config.context = context;
  config.vocab = vocab;
  return config;
}

struct Sample {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;

  friend bool operator==(const Sample&, const Sample&) = default;
};

inline Sample train_sample(const Source& source, std::uint64_t index, std::size_t context) {
  Sample sample{std::vector<std::int32_t>(context), std::vector<std::int32_t>(context)};
  source.train_sample(index, sample.inputs, sample.targets);
  return sample;
}

inline Sample eval_sample(const Source& source, std::uint64_t index, std::size_t context) {
  Sample sample{std::vector<std::int32_t>(context), std::vector<std::int32_t>(context)};
  source.eval_sample(index, sample.inputs, sample.targets);
  return sample;
}

inline SampleFormat format_of(const ModelConfig& model) {
  const TensorSpec tokens{Dtype::kInt64, {model.context}};
  return {{{"", tokens, model.vocab}}, tokens, model.vocab, /*is_next_token=*/true, {}};
}

// The error of a source that must not open.
inline Error open_error(const DataConfig& data, const ModelConfig& model) {
  const auto source = open_source(data, format_of(model), 1);
  EXPECT_FALSE(source.ok());
  return source.ok() ? Error{} : source.error();
}

inline std::unique_ptr<const Source> opened(const DataConfig& data,
                                            const ModelConfig& model,
                                            std::int64_t seed = 1) {
  auto source = open_source(data, format_of(model), seed);
  EXPECT_TRUE(source.ok()) << (source.ok() ? "" : describe(source.error()));
  return source.ok() ? std::move(source).value() : nullptr;
}

}  // namespace motley

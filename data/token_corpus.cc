#include <fmt/format.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "data/corpus.h"
#include "data/tokens/nanogpt_meta.h"
#include "data/tokens/token_files.h"
#include "data/tokens/token_layout.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

struct OpenedFile {
  Corpus::Part part;
  TokenLayout layout;
};

Result<OpenedFile> open_token_file(const fs::path& path,
                                   const DataConfig& data,
                                   std::uint32_t vocab) {
  MOTLEY_ASSIGN(auto file, MappedFile::open(path));
  MOTLEY_ASSIGN(const TokenLayout layout, layout_of_tokens(file.bytes(), path, data.dtype, vocab));
  return OpenedFile{{std::move(file), layout.begin, path.string()}, layout};
}

Result<void> check_shard(const OpenedFile& shard, const OpenedFile& first) {
  const auto& file = std::get<MappedFile>(shard.part.storage);
  if (file.bytes().size() == shard.part.begin) {
    return Error{ErrorCode::kData, fmt::format("no tokens in {}", shard.part.file),
                 "the file is empty", "remove it, or create it again"};
  }
  if (shard.layout.type == first.layout.type) return {};
  return Error{
      ErrorCode::kData, "the token files do not have the same dtype",
      fmt::format("{} has {}, {} has {}", first.part.file, token_type_name(first.layout.type),
                  shard.part.file, token_type_name(shard.layout.type)),
      "set data.path to files of one dtype, for instance by a pattern, or set data.dtype "
      "if it was detected wrongly"};
}

std::string held_out_remark(const std::vector<fs::path>& files) {
  const std::string pattern = pattern_of(files).string();
  return fmt::format(
      "{} {} held out by name and not trained on ({}): set data.holdout_path = \"{}\" to evaluate "
      "on "
      "{}",
      files.size(), files.size() == 1 ? "file is" : "files are", files.front().filename().string(),
      pattern, files.size() == 1 ? "it" : "them");
}

void add_remarks_on_names(Corpus& corpus, const TokenFiles& found, const DataConfig& data) {
  if (!found.held_out.empty() && data.holdout_path.empty()) {
    corpus.add_remark(held_out_remark(found.held_out));
  }
  if (!found.left_out.is_empty()) {
    corpus.add_remark(found.left_out.line(found.files.front().parent_path()));
  }
}

}  // namespace

Result<Corpus> open_token_corpus(const DataConfig& data, std::uint32_t vocab) {
  MOTLEY_ASSIGN(const TokenFiles found, find_token_files(data.path));
  std::vector<OpenedFile> opened;
  for (const fs::path& path : found.files) {
    MOTLEY_ASSIGN(OpenedFile file, open_token_file(path, data, vocab));
    opened.push_back(std::move(file));
    if (found.files.size() > 1) MOTLEY_TRY(check_shard(opened.back(), opened.front()));
  }
  const TokenLayout& first = opened.front().layout;
  bool has_usual_type = true;
  std::vector<Corpus::Part> parts;
  for (OpenedFile& file : opened) {
    has_usual_type = has_usual_type && file.layout.has_usual_type;
    parts.push_back(std::move(file.part));
  }
  Corpus corpus(std::move(parts), first.type, has_usual_type);
  add_remarks_on_names(corpus, found, data);
  return corpus;
}

std::optional<std::string> meta_remark(const DataConfig& data, std::uint32_t vocab) {
  const auto found = find_token_files(data.path);
  if (!found.ok() || found->files.front().extension() != ".bin") return std::nullopt;
  const fs::path path = found->files.front().parent_path() / "meta.pkl";
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return std::nullopt;
  const auto meta = MappedFile::open(path);
  if (!meta.ok()) return std::nullopt;
  const auto size = vocab_size_in_meta(meta->bytes());
  if (size == static_cast<std::int64_t>(vocab)) return std::nullopt;
  if (!size) {
    return fmt::format(
        "{} is beside the tokens: a pickle, which is not read; compare its vocab_size with "
        "model.vocab = {}",
        path.string(), vocab);
  }
  return fmt::format(
      "{} says that the vocabulary has {} tokens, model.vocab is {}: set model.vocab = {}, unless "
      "the model has more on purpose",
      path.string(), *size, vocab, *size);
}

}  // namespace motley

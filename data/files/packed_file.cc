#include "data/files/packed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/system/shell_word.h"

namespace motley {
namespace {

namespace fs = std::filesystem;
using std::string_view_literals::operator""sv;

struct PackedFormat {
  std::string_view magic;
  std::string_view is;        // what such a file is
  std::string_view unpacker;  // {0} is the file, {1} the result
  std::string_view suffix;    // of such files' names
};

constexpr PackedFormat kPackedFormats[] = {
    {"\x1f\x8b\x08"sv, "compressed by gzip", "gzip -dc {0} > {1}", ".gz"},
    {"\x28\xb5\x2f\xfd"sv, "compressed by zstd", "zstd -dc {0} > {1}", ".zst"},
    {"\xfd\x37zXZ\0"sv, "compressed by xz", "xz -dc {0} > {1}", ".xz"},
    {"BZh91AY&SY"sv, "compressed by bzip2", "bzip2 -dc {0} > {1}", ".bz2"},
    {"PK\x03\x04"sv, "a ZIP archive", "unzip {0} -d {1}", ".zip"},
    {"%PDF-"sv, "a PDF document", "pdftotext {0} {1}", ".pdf"},
    {"PAR1"sv, "a Parquet table", "", ".parquet"},
};

// Other programs' files in place of tokens.
struct ForeignFormat {
  std::string_view magic;
  std::string_view is;
  std::string_view remedy;
};

constexpr std::string_view kOtherPath = "set data.path to a file of tokens";
constexpr ForeignFormat kForeignFormats[] = {
    {"PK\x03\x04"sv, "a ZIP archive, as written by numpy.savez and torch.save",
     "save the tokens alone: numpy.save(\"train.npy\", numpy.load(file)[name])"},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file",
     "save the tokens alone: numpy.save(\"train.npy\", f[name][:])"},
    {"ARROW1"sv, "an Arrow file",
     "save the tokens alone: numpy.save(\"train.npy\", column.to_numpy())"},
    {"MMIDIDX"sv, "an index of Megatron's", "set data.path to the .bin file beside it"},
    {"TNTIDX"sv, "an index of fairseq's or an early Megatron's",
     "preprocess the data again with --dataset-impl mmap"},
    {"GGUF"sv, "a model of llama.cpp", kOtherPath},
    {"\x7f"
     "ELF"sv,
     "a program", kOtherPath},
    {"SQLite format 3"sv, "an SQLite database", kOtherPath},
    {"\x89PNG\r\n\x1a\n"sv, "a picture", kOtherPath},
    {"\xff\xd8\xff\xe0"sv, "a picture", kOtherPath},
    {"\xff\xd8\xff\xe1"sv, "a picture", kOtherPath}};

// A .npy file that does not begin as one.
bool is_damaged_npy(std::string_view bytes) {
  constexpr std::size_t kHeaderBegin = 16;
  const std::string_view begin = bytes.substr(0, kHeaderBegin);
  return begin.find("NUMPY") == 1 || begin.find("{'desc") != std::string_view::npos;
}

// "a.txt.gz" becomes "a.txt"; if the name would not change, it becomes "FILE.txt".
std::string unpacked_name(const fs::path& path, std::string_view suffix) {
  const std::string name = path.string();
  const bool is_stripped = name.ends_with(suffix) && name.size() > suffix.size();
  return is_stripped ? name.substr(0, name.size() - suffix.size()) : name + ".txt";
}

// A compressed archive is unpacked into a folder.
std::string tar_remedy(const std::string& file, const std::string& tar_name) {
  const std::string folder = quote_for_shell(unpacked_name(tar_name, ".tar"));
  return fmt::format("mkdir {0} && tar -xf {1} -C {0}", folder, file);
}

std::string remedy(const PackedFormat& format, const fs::path& path) {
  if (format.unpacker.empty()) {
    return "write its text column to a file first (for example with pandas.read_parquet), and set "
           "data.path to that file";
  }
  const std::string file = quote_for_shell(path.string());
  const std::string unpacked = unpacked_name(path, format.suffix);
  const std::string command =
      unpacked.ends_with(".tar")
          ? tar_remedy(file, unpacked)
          : fmt::format(fmt::runtime(format.unpacker), file, quote_for_shell(unpacked));
  return fmt::format(
      "unpack it first, and set data.path to the result:\n"
      "{}",
      command);
}

}  // namespace

std::optional<Error> packed_tokens(std::string_view bytes, const fs::path& path) {
  const auto no_tokens = [&](std::string_view is, const std::string& hint) {
    return Error{ErrorCode::kData, fmt::format("{} is not a token file", path.string()),
                 fmt::format("it is {}", is), hint};
  };
  const auto saving = [](std::string_view load) {
    return fmt::format("save the tokens alone: numpy.save(\"train.npy\", {})", load);
  };
  for (const ForeignFormat& format : kForeignFormats) {
    if (bytes.starts_with(format.magic)) return no_tokens(format.is, std::string(format.remedy));
  }
  if (is_damaged_npy(bytes)) {
    return no_tokens("an array of NumPy's with a damaged header",
                     "write it again with numpy.save, or check that it was copied completely");
  }
  constexpr std::string_view kPickleMagics[] = {"\x80\x02"sv, "\x80\x03"sv, "\x80\x04\x95"sv,
                                                "\x80\x05\x95"sv};
  for (const std::string_view magic : kPickleMagics) {
    if (bytes.starts_with(magic) && bytes.ends_with('.')) {
      return no_tokens("a pickle of Python's", saving("numpy.asarray(object)"));
    }
  }
  constexpr std::size_t kSafetensorsBegin = 8;  // offset of its header
  if (bytes.size() > kSafetensorsBegin && bytes.substr(kSafetensorsBegin).starts_with("{\""sv)) {
    return no_tokens("a safetensors file", saving("tensors[name].numpy()"));
  }
  auto packed = packed_text(bytes, path);
  if (packed) packed->what = fmt::format("{} is not a token file", path.string());
  return packed;
}

std::optional<Error> packed_text(std::string_view bytes, const fs::path& path) {
  const auto format = std::ranges::find_if(
      kPackedFormats, [&](const PackedFormat& each) { return bytes.starts_with(each.magic); });
  if (format == std::end(kPackedFormats)) return {};
  return Error{ErrorCode::kData, fmt::format("{} is not text", path.string()),
               fmt::format("it is {}", format->is), remedy(*format, path)};
}

}  // namespace motley

#include <sys/stat.h>

#include <gmock/gmock.h>

#include "tests/data/fixture.h"

namespace motley {
namespace {

using testing::HasSubstr;

// The whole text of a source: without a holdout and with one window, the sample is the corpus.
std::string text_of(const DataConfig& data, std::size_t bytes) {
  const auto context = bytes - 1;
  const auto source = opened(data, model_config(static_cast<int>(context)));
  if (source == nullptr) return "(not opened)";
  const Sample sample = train_sample(*source, 0, context);
  std::string text(sample.inputs.begin(), sample.inputs.end());
  text += static_cast<char>(sample.targets.back());
  return text;
}

TEST(TextFile, GivesItsBytesAsTokens) {
  const DataFolder folder;
  const auto data = data_config("text", folder.write("a.txt", "h\xc3\xa9llo"));
  EXPECT_EQ(text_of(data, 6), "h\xc3\xa9llo");
  EXPECT_EQ(opened(data, model_config(4))->bytes_per_token(), 1.0);
}

TEST(TextFolder, JoinsFilesInTheOrderOfTheirPaths) {
  const DataFolder folder;
  folder.write("b.txt", "two");
  folder.write("c/x.txt", "three");
  folder.write("a.txt", "one");
  folder.write("empty.txt", "");
  EXPECT_EQ(text_of(data_config("text", folder.root()), 13), "one\ntwo\nthree");
}

std::vector<std::string> remarks_of(const DataConfig& data, int context) {
  const auto source = opened(data, model_config(context));
  return source == nullptr ? std::vector<std::string>{"(not opened)"} : source->remarks();
}

TEST(TextFolder, ReadsFoldersWhoseNamesBeginLikeThoseOfOutputs) {
  const DataFolder folder;
  folder.write("buildings/a.txt", "one");
  folder.write("runs-2024/b.txt", "two");
  EXPECT_EQ(text_of(data_config("text", folder.root()), 7), "one\ntwo");
  EXPECT_THAT(remarks_of(data_config("text", folder.root()), 3), testing::IsEmpty());
}

TEST(TextFolder, LeavesOutBuildsRunsHiddenFoldersAndBinaryFiles) {
  const DataFolder folder;
  folder.write("a.txt", "text");
  folder.write("build-x/b.txt", "no");
  folder.write("build-x/CMakeCache.txt", "no");
  folder.write("build/b.txt", "no");
  folder.write("runs/c.txt", "no");
  folder.write("mine/launches/000001.json", "no");
  folder.write("mine/config.toml", "no");
  folder.write("sub/.git/d.txt", "no");
  folder.write("e.bin", std::string("n\0o", 3));
  std::filesystem::create_symlink("a.txt", folder.root() / "link.txt");
  EXPECT_EQ(text_of(data_config("text", folder.root()), 4), "text");
}

// Certain outputs are left out without a word; what only the name tells is said.
TEST(TextFolder, SaysWhatIsLeftOut) {
  const DataFolder folder;
  folder.write("a.txt", "text");
  folder.write("build/release/CMakeCache.txt", "no");
  folder.write("runs/gpt/launches/000001.json", "no");
  folder.write(".git/x.txt", "no");
  EXPECT_THAT(remarks_of(data_config("text", folder.root()), 3), testing::IsEmpty());
  folder.write("sub/runs/c.txt", "no");
  folder.write("sub/runs/.gitkeep", "");  // no hidden folder
  folder.write("e.bin", std::string("n\0o", 3));
  folder.write("b.gz", "\x1f\x8b\x08 rest");
  folder.write("._a.txt", std::string("\0\5\x16\7 no", 7));
  folder.write("Desktop.ini", "[.ShellClassInfo]");
  folder.write("__MACOSX/a.txt", "no");
  std::filesystem::create_symlink("a.txt", folder.root() / "link.txt");
  const auto remarks = remarks_of(data_config("text", folder.root()), 3);
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_THAT(remarks[0], testing::StartsWith("left out of " + folder.root().string() + ": "));
  EXPECT_THAT(remarks[0], HasSubstr("1 by the name build or runs (sub/runs)"));
  EXPECT_THAT(remarks[0], HasSubstr("1 as no text (e.bin)"));
  EXPECT_THAT(remarks[0], HasSubstr("1 as packed (b.gz)"));
  EXPECT_THAT(remarks[0], HasSubstr("3 as leftovers of an operating system ("));
  EXPECT_THAT(remarks[0], HasSubstr("1 as links (link.txt)"));
  EXPECT_EQ(text_of(data_config("text", folder.root()), 4), "text");
}

TEST(TextFolder, OfLinksAloneSaysSo) {
  const DataFolder folder;
  std::filesystem::create_symlink("elsewhere.txt", folder.root() / "link.txt");
  EXPECT_THAT(open_error(data_config("text", folder.root()), model_config(2)).cause,
              HasSubstr("1 as links (link.txt)"));
}

TEST(TextFolder, ReadsUtf16AsUtf8AndSaysSo) {
  const DataFolder folder;
  folder.write("a.txt", "one");
  folder.write("b.txt", std::string("\xFF\xFEt\0\xE9\0", 6));
  const auto data = data_config("text", folder.root());
  EXPECT_EQ(text_of(data, 7), "one\nt\xc3\xa9");
  EXPECT_THAT(remarks_of(data, 3), testing::ElementsAre(HasSubstr("1 file below")));
}

TEST(TextFile, InUtf16IsReadAsUtf8) {
  const DataFolder folder;
  const auto data =
      data_config("text", folder.write("a.txt", std::string("\xFE\xFF\0h\0\xE9\0l", 8)));
  EXPECT_EQ(text_of(data, 4), "h\xc3\xa9l");
  EXPECT_THAT(remarks_of(data, 2), testing::ElementsAre(HasSubstr("is UTF-16, and read as UTF-8")));
  const auto cut = data_config("text", folder.write("b.txt", std::string("\xFF\xFEh\0l", 5)));
  EXPECT_THAT(open_error(cut, model_config(1)).cause, HasSubstr("incomplete characters"));
}

TEST(TextFolder, ReadsOnlyTheWantedSuffixes) {
  const DataFolder folder;
  folder.write("a.cc", "source");
  folder.write("b.h", "header");
  folder.write("c.txt", "other");
  DataConfig data = data_config("text", folder.root());
  data.suffixes = {".cc", ".h"};
  EXPECT_EQ(text_of(data, 13), "source\nheader");
}

TEST(TextErrors, NameTheSuffixesThatMatchNothing) {
  const DataFolder folder;
  folder.write("a.txt", "text");
  DataConfig data = data_config("text", folder.root());
  data.suffixes = {".cc", ".h"};
  const Error error = open_error(data, model_config(2));
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_EQ(error.cause, "no text file has the suffix .cc, .h");
}

TEST(TextErrors, RefuseAnEmptyFolder) {
  const DataFolder folder;
  EXPECT_THAT(open_error(data_config("text", folder.root()), model_config(2)).what,
              HasSubstr("no text below"));
}

TEST(TextErrors, RefuseAFolderTooLargeForMemory) {
  const DataFolder folder;
  std::filesystem::resize_file(folder.write("a.txt", ""), 5ULL << 30);  // a hole without blocks
  const Error error = open_error(data_config("text", folder.root()), model_config(2));
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_THAT(error.what, HasSubstr("too much text below"));
}

TEST(TextErrors, NameAMissingFile) {
  const Error error = open_error(data_config("text", "/nowhere/a.txt"), model_config(2));
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_EQ(error.what, "cannot read /nowhere/a.txt");
  EXPECT_EQ(error.remedy, "check the path");
}

TEST(TextErrors, RefuseANamedPipeWithoutWaiting) {
  const DataFolder folder;
  const std::string pipe = folder.root() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(open_error(data_config("text", pipe), model_config(2)).cause,
            "it is not a regular file");
}

TEST(TextErrors, AskForThePath) {
  const Error error = open_error(data_config("text", ""), model_config(2));
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_EQ(error.what, "data.path is not set");
}

TEST(TextErrors, RefuseAVocabularyBelowTheByteValues) {
  const DataFolder folder;
  const Error error =
      open_error(data_config("text", folder.write("a.txt", "text")), model_config(2, 100));
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_EQ(error.what, "vocabulary of 100 is smaller than the 256 byte values");
  EXPECT_EQ(error.remedy, "set model.vocab = 256");
}

TEST(TextErrors, RefuseABinaryFile) {
  const DataFolder folder;
  const auto data = data_config("text", folder.write("a.bin", std::string("a\0b", 3)));
  EXPECT_THAT(open_error(data, model_config(1)).what, HasSubstr("is not text"));
}

// Compressed files may or may not contain NUL bytes.
TEST(PackedText, IsRefusedWithTheCommandThatUnpacksIt) {
  const DataFolder folder;
  const std::pair<std::string, std::string> packed[] = {
      {std::string("\x1f\x8b\x08\x00x", 5), "gzip -dc"},
      {"\x28\xb5\x2f\xfd rest", "zstd -dc"},
      {std::string("\xfd\x37zXZ\0x", 7), "xz -dc"},
      {"BZh91AY&SY rest", "bzip2 -dc"},
      {"PK\x03\x04 rest", "unzip"},
      {"%PDF-1.4 rest", "pdftotext"},
      {"PAR1 rest", "read_parquet"}};
  for (const auto& [bytes, command] : packed) {
    const std::string file = folder.write("a text.bin", bytes);
    const Error error = open_error(data_config("text", file), model_config(1));
    EXPECT_EQ(error.code, ErrorCode::kData);
    EXPECT_EQ(error.what, file + " is not text");
    EXPECT_THAT(error.remedy, HasSubstr(command)) << error.cause;
  }
}

TEST(PackedText, BecomesAFileOrAFolderOfItsName) {
  const DataFolder folder;
  const std::string gzip = "\x1f\x8b\x08 rest";
  const auto last_line = [&](const std::string& name, const std::string& bytes) {
    const auto data = data_config("text", folder.write(name, bytes));
    const std::string remedy = open_error(data, model_config(1)).remedy;
    return remedy.substr(remedy.rfind('\n') + 1);
  };
  const std::string here = folder.root().string() + "/";
  EXPECT_EQ(last_line("a.txt.gz", gzip), "gzip -dc " + here + "a.txt.gz > " + here + "a.txt");
  EXPECT_EQ(last_line("my a", gzip), "gzip -dc '" + here + "my a' > '" + here + "my a.txt'");
  EXPECT_EQ(last_line("b.tar.gz", gzip),
            "mkdir " + here + "b && tar -xf " + here + "b.tar.gz -C " + here + "b");
  EXPECT_EQ(last_line("c.zip", "PK\x03\x04"), "unzip " + here + "c.zip -d " + here + "c");
}

TEST(PackedText, IsLeftOutOfAFolderThatHoldsOther) {
  const DataFolder folder;
  folder.write("a.gz", "\x1f\x8b\x08 rest");
  const Error error = open_error(data_config("text", folder.root()), model_config(1));
  EXPECT_THAT(error.what, HasSubstr("no text below"));
  EXPECT_THAT(error.remedy, HasSubstr("gzip -dc"));
  folder.write("b.txt", "text");
  EXPECT_EQ(text_of(data_config("text", folder.root()), 4), "text");
}

TEST(ShortData, IsRefusedForTraining) {
  const DataFolder folder;
  const auto data = data_config("text", folder.write("a.txt", "12345678"));
  EXPECT_NE(opened(data, model_config(7)), nullptr);
  const Error error = open_error(data, model_config(8));
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_THAT(error.what, HasSubstr("the data is too short, 8 tokens"));
}

TEST(ShortData, IsRefusedForEvaluation) {
  const DataFolder folder;
  const auto data = data_config("text", folder.write("a.txt", std::string(100, 'x')), 0.1);
  EXPECT_NE(opened(data, model_config(9)), nullptr);
  EXPECT_THAT(open_error(data, model_config(10)).remedy,
              HasSubstr("data.holdout = 0 with train.eval_every = 0"));
}

TEST(ShortData, MayBeEmpty) {
  const DataFolder folder;
  const auto data = data_config("text", folder.write("a.txt", ""));
  EXPECT_THAT(open_error(data, model_config(1)).what, HasSubstr("too short, 0 tokens"));
}

}  // namespace
}  // namespace motley

// A run folder that is not writable, belongs to another user, or contains data that this version
// or model cannot use. Each gives an error with the documented status, and saved files stay
// byte-identical.
//
// Root may write anything, so as root the runs use an unprivileged user.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

namespace fs = std::filesystem;

using fs::perms;
using testing::AllOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr const char* kSetPriv = "/usr/bin/setpriv";
constexpr uid_t kPerson = 65534;  // nobody
constexpr perms kWrite = perms::owner_write | perms::group_write | perms::others_write;

class GuardedFolder : public testing::Test {
 protected:
  void SetUp() override {
    if (is_root() && !fs::exists(kSetPriv)) GTEST_SKIP() << "as root this needs setpriv";
    saved_words_ = words({"--stop-after", "2"});
    give_to_person(job_.folder().path());
    const Outcome first = as_person(saved_words_);
    ASSERT_EQ(first.status, 0) << first.err;
    saved_ = contents();
    ASSERT_EQ(saved_.size(), 5U);
  }

  void TearDown() override { set_writable(true, job_.folder().path()); }

  static bool is_root() { return ::geteuid() == 0; }

  // With a copy of the shared profile that the unprivileged user can read.
  [[nodiscard]] Words words(const Words& more, const std::string& name = "run") const {
    Words all = job_.train_words(name, more);
    const fs::path profile = job_.folder() / "profile.json";
    fs::copy_file(all.back(), profile, fs::copy_options::skip_existing);
    all.back() = profile.string();
    return all;
  }

  static void give_to_person(const fs::path& folder) {
    if (!is_root()) return;
    ASSERT_EQ(::chown(folder.c_str(), kPerson, kPerson), 0);
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      ASSERT_EQ(::lchown(entry.path().c_str(), kPerson, kPerson), 0);
    }
  }

  // Runs the command without root's privileges.
  [[nodiscard]] Outcome as_person(const Words& words) const {
    if (!is_root()) return motley(words);
    Words all = {fmt::format("--reuid={}", kPerson),
                 fmt::format("--regid={}", kPerson),
                 "--clear-groups",
                 "--inh-caps=-all",
                 "--",
                 program().string()};
    all.insert(all.end(), words.begin(), words.end());
    return motley(all, kSetPriv);
  }

  static fs::path program() { return stage_program().parent_path() / "motley"; }

  static void set_writable(bool writable, const fs::path& folder) {
    const auto change = writable ? fs::perm_options::add : fs::perm_options::remove;
    const perms rights = writable ? perms::owner_write : kWrite;
    fs::permissions(folder, rights, change);
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_symlink()) fs::permissions(entry.path(), rights, change);
    }
  }

  [[nodiscard]] fs::path run() const { return job_.run_dir("run"); }

  [[nodiscard]] fs::path checkpoint() const { return run() / "checkpoints/step-000002"; }

  [[nodiscard]] std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(checkpoint())) {
      files[entry.path().filename().string()] = read_text(entry.path());
    }
    return files;
  }

  void expect_refused(const Outcome& outcome,
                      int status,
                      const testing::Matcher<const std::string&>& what) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("motley: error: "), what));
  }

  // After permissions and folders have been restored.
  void expect_untouched() {
    EXPECT_EQ(contents(), saved_);
    EXPECT_EQ(motley({"ckpt", "verify", checkpoint().string()}).status, 0);
    const Outcome on = as_person(words({"--resume", "--stop-after", "4"}));
    EXPECT_EQ(on.status, 0) << on.err;
  }

  SmallJob job_;
  Words saved_words_;
  std::map<std::string, std::string> saved_;
};

TEST_F(GuardedFolder, ThatMayNotBeWrittenIsNotGoneOnIn) {
  set_writable(false, run());
  expect_refused(as_person(words({"--resume", "--stop-after", "4"})), 7,
                 AllOf(HasSubstr(run().string()), HasSubstr("Permission denied"),
                       HasSubstr("check the permissions")));
  set_writable(true, run());
  expect_untouched();
}

// Only the checkpoints folder is not writable: the first save fails and the run continues; the
// last save reports the failure.
TEST_F(GuardedFolder, ThatTakesNoCheckpointEndsTheRunWithTheLastOneUnsaved) {
  set_writable(false, run() / "checkpoints");
  expect_refused(as_person(words({"--resume", "--stop-after", "4"})), 7,
                 AllOf(HasSubstr("not saved"), HasSubstr("Permission denied"),
                       HasSubstr("The checkpoint of step 2 remains")));
  set_writable(true, run() / "checkpoints");
  expect_untouched();
}

TEST_F(GuardedFolder, WhoseParentMayNotBeWrittenIsNotMade) {
  const fs::path parent = job_.folder() / "guarded";
  fs::create_directory(parent);
  give_to_person(parent);
  fs::permissions(parent, kWrite, fs::perm_options::remove);
  expect_refused(as_person(words({}, "guarded/run")), 7,
                 AllOf(HasSubstr("guarded/run"), HasSubstr("Permission denied")));
  expect_untouched();
}

TEST_F(GuardedFolder, OfAnotherPersonIsLeftAlone) {
  if (!is_root()) GTEST_SKIP() << "giving a folder away needs root";
  for (const perms rights :
       {perms::owner_all, perms::owner_all | perms::group_read | perms::group_exec |
                              perms::others_read | perms::others_exec}) {
    ASSERT_EQ(::chown(run().c_str(), 0, 0), 0);
    fs::permissions(run(), rights);
    for (const Words& more : {Words{"--resume"}, Words{}}) {
      const Outcome outcome = as_person(words(more));
      // With permission to read the folder, the error is that it contains a run; otherwise it is
      // about permissions.
      const bool sees_run = rights != perms::owner_all && more.empty();
      expect_refused(outcome, sees_run ? 3 : 7,
                     sees_run ? HasSubstr("already holds a run") : HasSubstr("ermission"));
      EXPECT_THAT(outcome.err, HasSubstr(run().string()));
    }
    fs::permissions(run(), perms::owner_all);
    ASSERT_EQ(::chown(run().c_str(), kPerson, kPerson), 0);
  }
  expect_untouched();
}

// Its step is the newest, so resuming from an older one would overwrite it.
TEST_F(GuardedFolder, WithACheckpointOfANewerVersionSaysWhoReadsIt) {
  const Outcome more = as_person(words({"--resume", "--stop-after", "4"}));
  ASSERT_EQ(more.status, 0) << more.err;
  const fs::path newer = run() / "checkpoints/step-000004/manifest.json";
  const std::string right = read_text(newer);
  std::string text = right;
  const std::string version = "\"version\": 2,";
  ASSERT_NE(text.find(version), std::string::npos);
  text.replace(text.find(version), version.size(), "\"version\": 3,");
  const std::size_t tail = text.rfind(",\n  \"hash\": ");
  const std::string body = text.substr(0, tail);
  text = fmt::format("{},\n  \"hash\": \"{}\"\n}}\n", body,
                     hash128_hex(std::as_bytes(std::span(body))));
  job_.folder().write("run/checkpoints/step-000004/manifest.json", text);
  expect_refused(as_person(words({"--resume", "--stop-after", "6"})), 7,
                 AllOf(HasSubstr(newer.string()), HasSubstr("its version is 3"),
                       HasSubstr("the version of Motley that wrote it"),
                       HasSubstr("step 2 is then the newest")));
  EXPECT_EQ(read_text(newer), text);
  EXPECT_EQ(contents(), saved_);
  job_.folder().write("run/checkpoints/step-000004/manifest.json", right);
  EXPECT_EQ(as_person(words({"--resume", "--stop-after", "6"})).status, 0);
}

// BadInput.CheckpointOfAnotherModel changes the configuration; here the checkpoint differs.
TEST_F(GuardedFolder, WithACheckpointOfAnotherModelIsNotGoneOnIn) {
  const Outcome other = motley(
      job_.train_words("other", {"--stop-after", "4", "--set", "model.width=48", "--stages", "1"}));
  ASSERT_EQ(other.status, 0) << other.err;
  const fs::path stray = run() / "checkpoints/step-000004";
  fs::copy(fs::path(job_.run_dir("other")) / "checkpoints/step-000004", stray);
  give_to_person(stray);
  expect_refused(as_person(words({"--resume", "--stop-after", "6"})), 3,
                 AllOf(HasSubstr("another model"), HasSubstr("step-000004")));
  EXPECT_EQ(contents(), saved_);
  fs::remove_all(stray);
  expect_untouched();
}

}  // namespace
}  // namespace motley::test

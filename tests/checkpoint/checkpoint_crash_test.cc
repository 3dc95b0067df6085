// Kills a save at each of its file operations in turn and checks the remaining state.
//
// The functions below replace the C library's in the whole program, for std::filesystem too, so
// the code under test needs no seam. A forked child dies at its k-th operation; in the middle of
// it if it is a write.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/checkpoint/fixture.h"

namespace {

constexpr int kCrashed = 42;

enum Operation { kWrite, kSync, kRename, kMakeFolder, kUnlink, kOperationKinds };

struct Script {
  int operations_left = -1;                                    // -1: no crash
  std::array<std::size_t, kOperationKinds>* counts = nullptr;  // shared with the parent
  std::vector<std::string>* trace = nullptr;                   // of successful syncs and renames
};

Script script;  // of this process; only a child sets it, except for `trace`

bool crash_is_due(Operation operation) {
  if (script.counts != nullptr) ++(*script.counts)[operation];
  return script.operations_left >= 0 && script.operations_left-- == 0;
}

void trace(const std::string& line) {
  if (script.trace != nullptr) script.trace->push_back(line);
}

void crash_when_due(Operation operation) {
  if (crash_is_due(operation)) ::_exit(kCrashed);
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t count) {
  const bool crash = crash_is_due(kWrite);
  const ssize_t written = ::syscall(SYS_write, fd, bytes, crash ? count / 2 : count);
  if (crash) ::_exit(kCrashed);
  return written;
}

// These tests kill the process, not the machine: the kernel keeps written data, so waiting for the
// disk would test nothing.
int fsync(int fd) {
  crash_when_due(kSync);
  trace("sync " + std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).string());
  return 0;
}

int rename(const char* from, const char* to) noexcept {
  crash_when_due(kRename);
  const int status = static_cast<int>(::syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
  if (status == 0) trace(fmt::format("rename {} {}", from, to));
  return status;
}

int mkdir(const char* path, mode_t mode) noexcept {
  crash_when_due(kMakeFolder);
  return static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  crash_when_due(kUnlink);
  return static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
}

}  // extern "C"

namespace motley {
namespace {

using testing::kLaunch;
using testing::TestRun;

class SharedCounts {
 public:
  SharedCounts()
      : counts_(static_cast<Counts*>(::mmap(
            nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}

  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;

  ~SharedCounts() { ::munmap(counts_, sizeof(Counts)); }

  [[nodiscard]] auto* get() { return counts_; }

 private:
  using Counts = std::array<std::size_t, kOperationKinds>;
  Counts* counts_;
};

// The work of a run between two steps: replaces step 10, adds step 20, removes the older one.
Result<void> save_and_prune(const TestRun& run) {
  MOTLEY_TRY(run.save(10, 2, 2));
  MOTLEY_TRY(run.save(20, 3, 3));
  return prune_checkpoints(run.dir(), {1}, kLaunch);
}

// The exit status of a child that runs save_and_prune and dies at operation `operation`.
int status_of_child(const TestRun& run, int operation, SharedCounts& counts) {
  const pid_t child = ::fork();
  if (child == 0) {
    script = {.operations_left = operation, .counts = counts.get()};
    ::_exit(save_and_prune(run).ok() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string hash_of(const std::filesystem::path& folder) {
  const auto manifest = read_manifest(folder);
  return manifest.ok() ? manifest->parameter_hash : "";
}

TEST(CheckpointCrash, AtEveryFileOperationAWholeCheckpointIsListed) {
  SharedCounts counts;
  int operation = 0;
  for (int status = kCrashed; status == kCrashed; ++operation) {
    const TestRun run;
    ASSERT_OK(run.save(10, 2, 1));
    const std::string old_hash = hash_of(checkpoint_folder(run.dir(), 10));
    status = status_of_child(run, operation, counts);
    ASSERT_TRUE(status == kCrashed || status == 0) << status;

    const auto listed = list_checkpoints(run.dir());
    ASSERT_FALSE(listed.empty()) << "after " << operation << " operations";
    for (const CheckpointInfo& info : listed) ASSERT_OK(verify_checkpoint(info.folder));
    // Step 20 is written only after step 10 is replaced; step 10 is removed only once step 20 is
    // complete.
    if (listed.size() == 1 && listed[0].step == 10) {
      const auto reader = CheckpointReader::open(listed[0].folder);
      ASSERT_OK(reader);
      std::vector<float> value(1);
      ASSERT_OK(reader->read("ln_f.weight", {1}, value));
      ASSERT_EQ(value[0], hash_of(listed[0].folder) == old_hash ? 2.0F : 4.0F);
    }

    // The same work succeeds on the state after the crash, and leaves nothing else.
    ASSERT_OK(save_and_prune(run));
    ASSERT_EQ(run.steps(), std::vector<std::int64_t>{20});
    ASSERT_EQ(run.names(), std::vector<std::string>{"step-000020"});
  }
  EXPECT_GT(operation, 50);
  EXPECT_THAT(*counts.get(), ::testing::Each(::testing::Gt(0U)));  // each kind was intercepted
}

// For power cuts: the content that a rename commits must be on the disk before it, and the rename
// before anything that relies on it.
TEST(CheckpointCrash, SyncsAndRenamesFollowTheProtocol) {
  const TestRun run;
  ASSERT_OK(run.save(10, 1, 1));
  std::vector<std::string> trace;
  script.trace = &trace;
  const auto saved = run.save(10, 1, 2);
  script.trace = nullptr;
  ASSERT_OK(saved);
  const std::string root = (run.dir() / "checkpoints").string();
  const std::string partial = root + "/.step-000010." + kLaunch + ".partial";
  const std::string replaced = root + "/.step-000010.replaced";
  const std::string committed = root + "/step-000010";
  EXPECT_THAT(trace,
              ::testing::ElementsAre(
                  "sync " + partial + "/model-00001-of-00001.safetensors",
                  "sync " + partial + "/optimizer-00001-of-00001.safetensors",
                  // Up to here the rank's part of the save; the rest is the launcher's.
                  "sync " + partial, "sync " + root, "sync " + run.dir().string(),
                  "sync " + partial + "/model.safetensors.index.json",
                  "sync " + partial + "/config.json", "sync " + partial + "/manifest.json.tmp",
                  "rename " + partial + "/manifest.json.tmp " + partial + "/manifest.json",
                  "sync " + partial, "rename " + committed + " " + replaced, "sync " + root,
                  "rename " + partial + " " + committed, "sync " + root,
                  "rename " + replaced + " " + root + "/.step-000010.removed", "sync " + root,
                  "sync " + run.dir().string()));
}

// A file size limit makes write() fail in the middle, as on a disk that becomes full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &saved_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = saved_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }

  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &saved_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit saved_{};
};

TEST(CheckpointDiskFull, LeavesEarlierCheckpointsAndIsCleanedUpLater) {
  const TestRun run;
  ASSERT_OK(run.save(10));
  {
    const FileSizeLimit limit(400);
    EXPECT_CORRUPT(run.save(20), "File too large");
  }
  EXPECT_EQ(run.steps(), std::vector<std::int64_t>{10});
  EXPECT_OK(verify_checkpoint(checkpoint_folder(run.dir(), 10)));
  EXPECT_TRUE(std::filesystem::exists(partial_folder({run.dir(), kLaunch, 20})));

  ASSERT_OK(run.save(30));
  ASSERT_OK(prune_checkpoints(run.dir(), {0}, kLaunch));
  EXPECT_THAT(run.names(), ::testing::UnorderedElementsAre("step-000010", "step-000030"));
}

TEST(CheckpointDiskFull, WhileTheManifestIsWrittenKeepsTheOldOne) {
  const TestRun run;
  ASSERT_OK(run.save(10, 2, 1));
  const std::string before = hash_of(checkpoint_folder(run.dir(), 10));
  const auto shards = run.write(10, 2, 2);
  ASSERT_OK(shards);
  {
    const FileSizeLimit limit(1000);  // enough for the index, not for the manifest
    EXPECT_CORRUPT(run.commit(10, *shards), "manifest.json");
  }
  EXPECT_OK(verify_checkpoint(checkpoint_folder(run.dir(), 10)));
  EXPECT_EQ(hash_of(checkpoint_folder(run.dir(), 10)), before);
}

}  // namespace
}  // namespace motley

// Runs the built `motley` as a person would and reads what it leaves.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace motley::test {

struct Outcome {
  int status = -1;  // exit status, or 128 + signal
  std::string out;
  std::string err;
};

// A folder of its own that goes away with it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }

  // Writes a file into it and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

// A `motley` process under way; its output goes to files.
class RunningMotley {
 public:
  // `program`: a `motley`; "" = the one that was built. `cache`: where it and its workers keep what
  // they have measured; "" = a folder of its own, so that no run finds what others have left.
  explicit RunningMotley(const std::vector<std::string>& arguments,
                         const std::filesystem::path& program = {},
                         const std::filesystem::path& cache = {});
  ~RunningMotley();  // kills it if it still runs
  RunningMotley(const RunningMotley&) = delete;
  RunningMotley& operator=(const RunningMotley&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  // Its worker processes, by ascending pid: in the order of the ranks.
  [[nodiscard]] std::vector<pid_t> workers() const;
  // Waits for its end, at most a minute.
  Outcome wait();

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  bool running_ = false;
};

Outcome motley(const std::vector<std::string>& arguments,
               const std::filesystem::path& program = {});

// The worker that was built.
std::filesystem::path stage_program();

// A copy of the built `motley` whose worker computes nothing: it notes that it was started, and
// fails.
class MotleyWithoutWorker {
 public:
  MotleyWithoutWorker();

  [[nodiscard]] Outcome run(const std::vector<std::string>& arguments) const;

  // Since this object was made.
  [[nodiscard]] bool worker_was_started() const;

 private:
  TemporaryFolder folder_;
};

// The last line of what was said, without the spaces before it: the command that goes on.
std::string last_line(std::string text);

// The exit status of a command of a shell, with these words behind it; what it says is lost.
int run_in_shell(const std::string& command, const std::string& more);

std::string read_text(const std::filesystem::path& path);

// One field of every line of a run's metrics.jsonl, as the text that stands there.
std::vector<std::string> metric_column(const std::filesystem::path& run_dir,
                                       const std::string& field);

// Waits until a condition holds, at most a minute; false when it never did.
template <class Condition>
bool eventually(Condition condition);

bool process_exists(pid_t pid);
void short_pause();

template <class Condition>
bool eventually(Condition condition) {
  for (int attempt = 0; attempt < 6000; ++attempt) {
    if (condition()) return true;
    short_pause();
  }
  return false;
}

}  // namespace motley::test

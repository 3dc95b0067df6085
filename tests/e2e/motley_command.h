// Runs the built `motley` as a user does, and reads its output files.
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

// A temporary folder, removed by the destructor.
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

// A running `motley` process; its output goes to files.
class RunningMotley {
 public:
  // `program`: a `motley`; "" = the built one. `cache`: the folder of stored measurements for it
  // and its workers; "" = a new folder, so that no run uses results of others.
  explicit RunningMotley(const std::vector<std::string>& arguments,
                         const std::filesystem::path& program = {},
                         const std::filesystem::path& cache = {});
  ~RunningMotley();  // kills it if it still runs
  RunningMotley(const RunningMotley&) = delete;
  RunningMotley& operator=(const RunningMotley&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  // Its worker processes in ascending order of pid, which is the order of ranks.
  [[nodiscard]] std::vector<pid_t> workers() const;
  // What it has printed so far on standard output, and on standard error.
  [[nodiscard]] std::string printed() const;
  [[nodiscard]] std::string reported() const;
  // Waits for its end, at most a minute.
  Outcome wait();

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  bool running_ = false;
};

Outcome motley(const std::vector<std::string>& arguments,
               const std::filesystem::path& program = {});

// The built worker program.
std::filesystem::path stage_program();

// A copy of the built `motley` with a worker that records that it was started, and fails.
class MotleyWithoutWorker {
 public:
  MotleyWithoutWorker();

  [[nodiscard]] Outcome run(const std::vector<std::string>& arguments) const;

  // Since this object was created.
  [[nodiscard]] bool worker_was_started() const;

 private:
  TemporaryFolder folder_;
};

// The last line of the text without leading spaces: the command that continues a run.
std::string last_line(std::string text);

// The exit status of a shell command followed by `more`; its output is discarded.
int run_in_shell(const std::string& command, const std::string& more);

std::string read_text(const std::filesystem::path& path);

// One field of every line of a run's metrics.jsonl, as JSON text.
std::vector<std::string> metric_column(const std::filesystem::path& run_dir,
                                       const std::string& field);

// Waits until a condition holds, at most a minute; returns whether it did.
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

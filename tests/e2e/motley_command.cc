#include "e2e/motley_command.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "base/json.h"

namespace motley::test {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "motley-e2e-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
  return (path_ / name).string();
}

namespace {

// This process's environment with one variable changed.
std::vector<std::string> environment_with(const std::string& name, const std::string& value) {
  std::vector<std::string> variables{name + "=" + value};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(name + "=")) variables.emplace_back(*entry);
  }
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

RunningMotley::RunningMotley(const std::vector<std::string>& arguments,
                             const std::filesystem::path& program,
                             const std::filesystem::path& cache) {
  const std::string path = program.empty() ? MOTLEY_PROGRAM : program.string();
  std::vector<std::string> words{path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment_with(
      "XDG_CACHE_HOME", cache.empty() ? (folder_ / "cache").string() : cache.string());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, (folder_ / "out").c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, (folder_ / "err").c_str(), flags, 0600);
  const int status = ::posix_spawn(&pid_, path.c_str(), &actions, nullptr,
                                   pointers_to(words).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) throw std::runtime_error("cannot start " + path);
  running_ = true;
}

RunningMotley::~RunningMotley() {
  if (!running_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::vector<pid_t> RunningMotley::workers() const {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    std::ifstream stat(entry.path() / "stat");
    pid_t pid = 0;
    pid_t parent = 0;
    std::string name;
    std::string state;
    if (stat >> pid >> name >> state >> parent && parent == pid_ && name == "(motley-stage)") {
      found.push_back(pid);
    }
  }
  std::ranges::sort(found);
  return found;
}

std::string RunningMotley::printed() const {
  return read_text(folder_ / "out");
}

std::string RunningMotley::reported() const {
  return read_text(folder_ / "err");
}

Outcome RunningMotley::wait() {
  int status = 0;
  if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) {
    throw std::runtime_error("motley did not end within a minute");
  }
  running_ = false;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          read_text(folder_ / "out"), read_text(folder_ / "err")};
}

Outcome motley(const std::vector<std::string>& arguments, const std::filesystem::path& program) {
  return RunningMotley(arguments, program).wait();
}

std::filesystem::path stage_program() {
  return std::filesystem::path(MOTLEY_PROGRAM).parent_path() / "motley-stage";
}

MotleyWithoutWorker::MotleyWithoutWorker() {
  std::filesystem::copy_file(MOTLEY_PROGRAM, folder_ / "motley");
  const std::filesystem::path worker = folder_.write(
      "motley-stage", "#!/bin/sh\necho started >> \"$(dirname \"$0\")/started\"\nexit 1\n");
  std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
}

Outcome MotleyWithoutWorker::run(const std::vector<std::string>& arguments) const {
  return motley(arguments, folder_ / "motley");
}

bool MotleyWithoutWorker::worker_was_started() const {
  return std::filesystem::exists(folder_ / "started");
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  text = text.substr(text.rfind('\n') + 1);
  return text.substr(text.find_first_not_of(' '));
}

int run_in_shell(const std::string& command, const std::string& more) {
  const int status =
      std::system((command + more + " >/dev/null 2>&1").c_str());  // NOLINT(cert-env33-c)
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> metric_column(const std::filesystem::path& run_dir,
                                       const std::string& field) {
  std::vector<std::string> values;
  std::istringstream lines(read_text(run_dir / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    values.push_back(Json::parse(line).at(field).dump());
  }
  return values;
}

// A zombie does not count, for example one whose parent sshd is stopped.
bool process_exists(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number;
  std::string name;
  std::string state;
  return (stat >> number >> name >> state) && state != "Z";
}

void short_pause() {
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace motley::test

#include "cluster/launch/worker_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/system/shell_word.h"
#include "plan/cluster/joined_shell.h"

namespace motley {

bool is_ssh(const std::vector<std::string>& prefix) {
  return !prefix.empty() && std::filesystem::path(prefix[0]).filename() == "ssh";
}

// Makes glibc request huge pages where the system leaves that to programs: a stage touches
// gigabytes in each step, and computes about 5 % faster with them. Other C libraries ignore it.
constexpr const char* kHugePages = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";

// How often GNU's OpenMP library polls for the other threads before it sleeps. Its default, a few
// hundred times as many, takes the core from the awaited threads if other programs run too, and a
// step then takes ten times as long. Other libraries ignore it.
constexpr const char* kSpins = "GOMP_SPINCOUNT=1000";

// The cycles, as a power of two, that OpenBLAS's threads poll for work before they sleep. Its
// default, 26, takes a core from OpenMP's threads for tens of milliseconds after each product.
constexpr const char* kBlasSpins = "OPENBLAS_THREAD_TIMEOUT=4";

std::vector<std::string> worker_command(const std::vector<std::string>& prefix,
                                        const std::filesystem::path& program,
                                        int threads) {
  // A joined machine has this function too.
  if (joined_shell(prefix)) {
    return remote_command(prefix, {"work", program.filename().string(), std::to_string(threads)});
  }
  std::vector<std::string> command = {"env"};
  if (threads > 0) {
    command.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
    command.push_back(fmt::format("OPENBLAS_NUM_THREADS={}", threads));
  }
  command.insert(command.end(), {kSpins, kBlasSpins, kHugePages, program.string()});
  return remote_command(prefix, std::move(command));
}

std::vector<std::string> remote_command(const std::vector<std::string>& prefix,
                                        std::vector<std::string> command) {
  std::vector<std::string> argv = prefix;
  if (is_ssh(prefix)) {
    for (std::string& word : command) word = quote_for_shell(word);
    argv.push_back(fmt::format("{}", fmt::join(command, " ")));
  } else {
    argv.insert(argv.end(), command.begin(), command.end());
  }
  return argv;
}

}  // namespace motley

// motley: the launcher. Plans, launches and inspects; does not link LibTorch and starts at once.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>

#include "base/process/stop_signals.h"
#include "base/system/files.h"
#include "base/system/privacy.h"
#include "base/system/standard_streams.h"
#include "base/system/version.h"
#include "base/toml.h"
#include "cli/command.h"
#include "cluster/join/head/local_request.h"
#include "comm/make_transport.h"
#include "plan/cluster/joined_shell.h"

namespace motley {
namespace {

std::string overview() {
  std::string text = fmt::format(
      "motley: {}\n\n"
      "Usage: motley COMMAND [options]       motley help COMMAND explains one\n\nCommands\n",
      kPurpose);
  for (const Command& command : all_commands()) {
    text += fmt::format("  {:<16} {}\n", command.spec.name, command.spec.summary);
  }
  text += fmt::format(
      "\nStart with: motley train configs/gpt-tiny.toml --set data.path=FILE --stages 2\n"
      "Exit status: {}",
      kExitStatuses);
  return text;
}

bool asks_for_help(const std::string& word) {
  return word == "--help" || word == "-h" || word == "help";
}

// The leading words that form a command's name ("ckpt show") are removed; the rest are its
// arguments.
const Command* find_command(const std::vector<Command>& commands, std::vector<std::string>& words) {
  for (const std::size_t count : {std::size_t{2}, std::size_t{1}}) {
    if (words.size() < count) continue;
    std::string name = words[0];
    for (std::size_t i = 1; i < count; ++i) name += " " + words[i];
    const auto it = std::ranges::find(commands, name, [](const Command& c) { return c.spec.name; });
    if (it == commands.end()) continue;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
    return &*it;
  }
  return nullptr;
}

// The commands that begin with that word: "bench codec", "bench transport", ….
std::vector<const Command*> family_of(const std::vector<Command>& commands,
                                      const std::string& word) {
  std::vector<const Command*> family;
  for (const Command& command : commands) {
    if (command.spec.name.starts_with(word + " ")) family.push_back(&command);
  }
  return family;
}

std::string family_help(const std::string& word, const std::vector<const Command*>& family) {
  std::string text = fmt::format("Usage: motley {} COMMAND [options]\n\nCommands\n", word);
  for (const Command* command : family) {
    text += fmt::format("  {:<16} {}\n", command->spec.name, command->spec.summary);
  }
  return text + fmt::format("\nmotley help {} explains one\n", family.front()->spec.name);
}

Error unknown_command(const std::vector<Command>& commands, const std::vector<std::string>& words) {
  const bool is_family = !family_of(commands, words[0]).empty();
  const std::string asked = is_family ? words[0] + " " + words[1] : words[0];
  std::vector<std::string> names;
  for (const Command& command : commands) {
    names.push_back(command.spec.name);
    if (!is_family) names.push_back(command.spec.name.substr(0, command.spec.name.find(' ')));
  }
  const std::string close = closest_word(asked, names);
  const std::string list = is_family ? fmt::format("motley {} --help", words[0]) : "motley --help";
  return {ErrorCode::kUsage, fmt::format("no command '{}'", asked), "",
          close.empty() ? fmt::format("{} lists the commands", list)
                        : fmt::format("did you mean 'motley {}'? {} lists all", close, list)};
}

// Prints the help of the command or family that the words name.
Result<void> show_help(const std::vector<Command>& commands, std::vector<std::string> words) {
  if (words.empty()) {
    std::fputs(overview().c_str(), stdout);
    return {};
  }
  if (const Command* command = find_command(commands, words); command != nullptr) {
    std::fputs(help_text(command->spec).c_str(), stdout);
    return {};
  }
  const auto family = family_of(commands, words[0]);
  if (family.empty() || words.size() > 1) return unknown_command(commands, words);
  std::fputs(family_help(words[0], family).c_str(), stdout);
  return {};
}

Result<void> run_command(const std::string& program, std::vector<std::string> words) {
  const std::vector<Command> commands = all_commands();
  if (asks_for_help(words[0])) {
    words.erase(words.begin());
    return show_help(commands, std::move(words));
  }
  const Command* command = find_command(commands, words);
  if (command == nullptr) {
    const bool is_family = !family_of(commands, words[0]).empty();
    if (is_family && words.size() == 2 && asks_for_help(words[1])) {
      return show_help(commands, {words[0]});
    }
    return unknown_command(commands, words);
  }
  MOTLEY_ASSIGN(const Arguments arguments, parse_arguments(command->spec, words, program));
  if (arguments.help()) {
    std::fputs(help_text(command->spec).c_str(), stdout);
    return {};
  }
  return command->run(arguments);
}

// The help for an incomplete command line, for standard error; "" if it is complete.
std::string nothing_asked(const std::vector<std::string>& words) {
  if (words.empty()) return overview();
  const std::vector<Command> commands = all_commands();
  const auto family = family_of(commands, words[0]);
  return words.size() == 1 && !family.empty() ? family_help(words[0], family) : "";
}

// Checks that all of standard output was written. A closed pipe is not an error: its reader ended
// it.
Result<void> printed() {
  errno = 0;
  const bool is_through = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (is_through || errno == EPIPE) return {};
  Error error = file_error("write", "standard output", errno != 0 ? errno : EIO);
  error.remedy = "the output is incomplete: free space on its disk";
  return error;
}

int run_motley(const std::string& program, const std::vector<std::string>& words) {
  if (const std::string text = nothing_asked(words); !text.empty()) {
    std::fputs(text.c_str(), stderr);
    return static_cast<int>(ErrorCode::kUsage);
  }
  if (words[0] == "--version") {
    fmt::print("motley {}\n", motley_version());
    return 0;
  }
  if (words[0] == kCompleteCommand) {
    print_completion({words.begin() + 1, words.end()});
    return 0;
  }
  if (words[0] == kOnCommand) return run_on_joined({words.begin() + 1, words.end()});
  auto done = run_command(program, words);
  if (done.ok()) done = printed();
  if (done.ok()) return 0;
  std::fputs(describe(done.error()).c_str(), stderr);
  return static_cast<int>(done.error().code);
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  motley::open_standard_streams();
  motley::ignore_file_size_limit();
  motley::quiet_transports();
  motley::restore_hangup_default();
  // A process that starts workers holds the secret by which they authenticate each other.
  motley::forbid_core_dumps();
  try {
    const std::string program = argc > 0 ? argv[0] : "motley";
    return motley::run_motley(program, {argv + std::min(argc, 1), argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "motley: error: unexpected failure: %s\n", e.what());
    return 1;
  }
}

// motley: the control side. Plans, launches, inspects; holds no LibTorch and starts at once.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/system/privacy.h"
#include "base/system/standard_streams.h"
#include "base/system/version.h"
#include "cluster/process/stop_signals.h"
#include "tools/command.h"

namespace motley {
namespace {

std::string overview() {
  std::string text =
      "motley: train one model on machines that do not match\n\n"
      "Usage: motley COMMAND [options]       motley COMMAND --help explains one\n\nCommands\n";
  for (const Command& command : all_commands()) {
    text += fmt::format("  {:<12} {}\n", command.spec.name, command.spec.summary);
  }
  text +=
      "\nStart with: motley train configs/gpt-tiny.toml --set data.path=FILE --stages 2\n"
      "Exit status: 0 ok, 2 usage, 3 configuration, 4 a machine or process was lost, "
      "5 not authorised,\n6 no feasible plan, 7 damaged or unwritable file, 8 unusable data, "
      "9 diverged,\n130/143 signals\n";
  return text;
}

// The words of a command are its name's ("ckpt show"); what follows are its arguments.
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

Result<void> run_command(const std::string& program, std::vector<std::string> words) {
  const std::vector<Command> commands = all_commands();
  const Command* command = find_command(commands, words);
  if (command == nullptr) {
    return Error{ErrorCode::kUsage, fmt::format("there is no command '{}'", words[0]), "",
                 "motley --help lists the commands"};
  }
  MOTLEY_ASSIGN(const Arguments arguments, parse_arguments(command->spec, words, program));
  if (arguments.help()) {
    std::fputs(help_text(command->spec).c_str(), stdout);
    return {};
  }
  return command->run(arguments);
}

int run_motley(const std::string& program, const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    std::fputs(overview().c_str(), words.empty() ? stderr : stdout);
    return words.empty() ? static_cast<int>(ErrorCode::kUsage) : 0;
  }
  if (words[0] == "--version") {
    fmt::print("motley {}\n", motley_version());
    return 0;
  }
  const auto done = run_command(program, words);
  if (done.ok()) return 0;
  std::fputs(describe(done.error()).c_str(), stderr);
  return static_cast<int>(done.error().code);
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  motley::open_standard_streams();
  motley::outlive_file_limits();
  motley::take_back_hangup();
  // Whatever starts workers holds the secret by which they know each other.
  motley::forbid_core_dumps();
  try {
    const std::string program = argc > 0 ? argv[0] : "motley";
    return motley::run_motley(program, {argv + std::min(argc, 1), argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "motley: error: unexpected failure: %s\n", e.what());
    return 1;
  }
}

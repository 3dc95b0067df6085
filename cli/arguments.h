// Command lines: one table per command defines the parser, the checks and the help text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace motley {

struct OptionSpec {
  std::string name;       // "stages", given as --stages
  std::string value;      // the value's name in the help, "N"; "" = a flag
  std::string help;       // one line
  bool repeated = false;  // may be given more than once
  char letter = 0;        // short form: 'o' for -o; 0 = none
};

struct CommandSpec {
  std::string name;                   // "train", "ckpt show"
  std::string summary;                // one line, in the list of commands
  std::vector<std::string> operands;  // names of the positional arguments, all required
  std::vector<OptionSpec> options;    // --help is implicit
  std::string text;                   // description and examples, for --help
  std::string instead = {};           // with this option the command takes no operands
  std::string needs = {};             // required options, "--cluster FILE", for the usage line
};

class Arguments {
 public:
  [[nodiscard]] bool help() const { return has("help"); }

  [[nodiscard]] bool has(const std::string& option) const { return values_.contains(option); }

  // The last value given. REQUIRES: has(option).
  [[nodiscard]] const std::string& value(const std::string& option) const;
  [[nodiscard]] std::vector<std::string> values(const std::string& option) const;

  [[nodiscard]] const std::string& operand(std::size_t index) const { return operands_[index]; }

  [[nodiscard]] const std::string& command() const { return command_; }

  // The command as one shell line: without the options `without`, with the flags `with`.
  [[nodiscard]] std::string command_line(const std::vector<std::string>& without,
                                         const std::vector<std::string>& with) const;
  // The same as words for a program: all but the program's own name.
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& without,
                                               const std::vector<std::string>& with) const;

 private:
  friend Result<Arguments> parse_arguments(const CommandSpec&,
                                           const std::vector<std::string>&,
                                           const std::string&);

  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> operands_;
  std::string program_;                                        // "motley"
  std::string command_;                                        // "ckpt show"
  std::vector<std::pair<std::string, std::string>> in_order_;  // as given; a flag has no value
};

// kUsage, naming the option, for anything that the table does not permit. Operands are not checked
// with --help. `program`: the name by which the user called this program.
[[nodiscard]] Result<Arguments> parse_arguments(const CommandSpec& spec,
                                                const std::vector<std::string>& words,
                                                const std::string& program = "motley");

[[nodiscard]] std::string help_text(const CommandSpec& spec);

// The parts of the help, also used by cli/guide/: the usage line "motley plan CONFIG [options]",
// the options including --help, and the description of CONFIG ("" if the command takes none).
[[nodiscard]] std::string usage_line(const CommandSpec& spec);
[[nodiscard]] std::vector<OptionSpec> options_with_help(const CommandSpec& spec);
[[nodiscard]] std::string config_note(const CommandSpec& spec);

// The option's value as a whole number in [low, high]; kUsage otherwise.
[[nodiscard]] Result<std::int64_t> integer_value(const Arguments& arguments,
                                                 const std::string& option,
                                                 std::int64_t low,
                                                 std::int64_t high);

// The option's value as a number of bytes: "5GB", "500 MB", "2GiB", "1000"; kUsage otherwise.
[[nodiscard]] Result<std::uint64_t> bytes_value(const Arguments& arguments,
                                                const std::string& option);

// The value of a required option; kUsage if it is missing.
[[nodiscard]] Result<std::string> required_value(const Arguments& arguments,
                                                 const std::string& option);

// The "key=value" pairs of --set. kUsage if '=' is missing.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> set_values(
    const Arguments& arguments);

}  // namespace motley

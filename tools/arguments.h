// Command lines: one table per command gives the parser, the checks and the help text.
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
  std::string value;      // what the help calls its value, "N"; "" = a flag
  std::string help;       // one line
  bool repeated = false;  // may be given several times
  char letter = 0;        // 'o', given as -o too; 0 = none
};

struct CommandSpec {
  std::string name;                   // "train", "ckpt show"
  std::string summary;                // one line, in the list of commands
  std::vector<std::string> operands;  // names of the positional arguments, all required …
  std::vector<OptionSpec> options;    // --help is always there
  std::string text;                   // what it does and examples, for --help
  std::string instead = {};           // … unless this option is given: then there are none
  std::string needs = {};             // options that must be given, "--cluster FILE", for the usage
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

  // The same command as one line for a shell: without the options `without`, with the flags `with`.
  [[nodiscard]] std::string command_line(const std::vector<std::string>& without,
                                         const std::vector<std::string>& with) const;

 private:
  friend Result<Arguments> parse_arguments(const CommandSpec&,
                                           const std::vector<std::string>&,
                                           const std::string&);

  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> operands_;
  std::string program_;                                        // "motley"
  std::string command_;                                        // "ckpt show"
  std::vector<std::pair<std::string, std::string>> in_order_;  // as given; flags have no value
};

// kUsage, naming the option, for anything the table does not allow. Operands are not checked when
// --help is given. `program`: what the person called this program.
[[nodiscard]] Result<Arguments> parse_arguments(const CommandSpec& spec,
                                                const std::vector<std::string>& words,
                                                const std::string& program = "motley");

[[nodiscard]] std::string help_text(const CommandSpec& spec);

// What the help is made of, for others who show the same (tools/guide/): "motley plan CONFIG
// [options]", the options with --help, and what CONFIG is ("" where a command takes none).
[[nodiscard]] std::string usage_line(const CommandSpec& spec);
[[nodiscard]] std::vector<OptionSpec> options_with_help(const CommandSpec& spec);
[[nodiscard]] std::string config_note(const CommandSpec& spec);

// The value of an option as a whole number in [low, high]; kUsage otherwise.
[[nodiscard]] Result<std::int64_t> integer_value(const Arguments& arguments,
                                                 const std::string& option,
                                                 std::int64_t low,
                                                 std::int64_t high);

// The value of an option as a number of bytes: "5GB", "500 MB", "2GiB", "1000"; kUsage otherwise.
[[nodiscard]] Result<std::uint64_t> bytes_value(const Arguments& arguments,
                                                const std::string& option);

// The value of an option that must be given; kUsage otherwise.
[[nodiscard]] Result<std::string> required_value(const Arguments& arguments,
                                                 const std::string& option);

// "key=value" pairs of --set. kUsage when there is no '='.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> set_values(
    const Arguments& arguments);

}  // namespace motley

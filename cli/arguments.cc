#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <sstream>

#include <boost/program_options.hpp>

#include "base/check.h"
#include "base/system/shell_word.h"
#include "base/toml.h"

namespace motley {
namespace po = boost::program_options;

namespace {

constexpr const char* kOperand = "operand";  // program_options requires a name

po::options_description known_options(const CommandSpec& spec) {
  po::options_description options;
  for (const OptionSpec& option : spec.options) {
    const std::string names =
        option.letter == 0 ? option.name : fmt::format("{},{}", option.name, option.letter);
    if (option.value.empty()) {
      options.add_options()(names.c_str(), "");
    } else {
      options.add_options()(names.c_str(), po::value<std::vector<std::string>>());
    }
  }
  options.add_options()("help,h", "");
  return options;
}

constexpr std::size_t kLineWidth = 96;

// Wraps the text into lines that begin at that column. The first one is already there.
std::string wrapped(const std::string& text, std::size_t column) {
  std::istringstream words(text);
  std::string lines;
  std::size_t used = column;
  for (std::string word; words >> word;) {
    const bool is_first = used == column;
    if (!is_first && used + 1 + word.size() > kLineWidth) {
      lines += "\n" + std::string(column, ' ');
      used = column;
    } else if (!is_first) {
      lines += ' ';
      ++used;
    }
    lines += word;
    used += word.size();
  }
  return lines;
}

// One or more lines per option: "  -o, --output FILE   write the profile …".
std::string options_text(const CommandSpec& spec) {
  const std::vector<OptionSpec> options = options_with_help(spec);
  std::vector<std::string> names;
  std::size_t widest = 0;
  for (const OptionSpec& option : options) {
    const std::string letter = option.letter == 0 ? "    " : fmt::format("-{}, ", option.letter);
    names.push_back(fmt::format("{}--{} {}", letter, option.name, option.value));
    widest = std::max(widest, names.back().size());
  }
  std::string text;
  for (std::size_t i = 0; i < options.size(); ++i) {
    text += fmt::format("  {:<{}}  {}\n", names[i], widest, wrapped(options[i].help, widest + 4));
  }
  return text;
}

Error usage_error(const CommandSpec& spec, const std::string& what) {
  return {ErrorCode::kUsage, what, "", fmt::format("motley {} --help", spec.name)};
}

// `written` may include a value: "--stage=2".
Error unknown_option(const CommandSpec& spec, std::string written) {
  written = written.substr(0, written.find('='));
  const std::size_t start = std::min(written.find_first_not_of('-'), written.size());
  std::vector<std::string> names = {"help"};
  for (const OptionSpec& option : spec.options) names.push_back(option.name);
  const std::string close = closest_word(written.substr(start), names);
  Error error = usage_error(spec, fmt::format("motley {} has no option {}", spec.name, written));
  error.remedy += " lists the options";
  if (!close.empty()) error.remedy = fmt::format("did you mean --{}? {}", close, error.remedy);
  return error;
}

Result<void> check_operands(const CommandSpec& spec,
                            const std::vector<std::string>& operands,
                            bool has_instead) {
  const std::size_t wanted = has_instead ? 0 : spec.operands.size();
  if (operands.size() < wanted) {
    const std::string& name = spec.operands[operands.size()];
    return usage_error(spec, fmt::format("motley {} needs {}{}", spec.name, name,
                                         spec.instead.empty() ? "" : " or --" + spec.instead));
  }
  if (operands.size() > wanted) {
    return usage_error(spec,
                       fmt::format("motley {}{} does not take '{}'", spec.name,
                                   has_instead ? " --" + spec.instead : "", operands[wanted]));
  }
  return {};
}

}  // namespace

const std::string& Arguments::value(const std::string& option) const {
  const auto it = values_.find(option);
  MOTLEY_CHECK(it != values_.end() && !it->second.empty(), "option {} has no value", option);
  return it->second.back();
}

std::vector<std::string> Arguments::values(const std::string& option) const {
  const auto it = values_.find(option);
  return it == values_.end() ? std::vector<std::string>{} : it->second;
}

std::string Arguments::command_line(const std::vector<std::string>& without,
                                    const std::vector<std::string>& with) const {
  std::string line = fmt::format("{} {}", quote_for_shell(program_), command_);
  for (const auto& [option, value] : in_order_) {
    // A value with a leading dash would be parsed as an option.
    const bool has_dash = value.starts_with("-");
    if (option == kOperand) {
      line += " " + quote_for_shell((has_dash ? "./" : "") + value);
    } else if (std::ranges::find(without, option) == without.end()) {
      line += " --" + option;
      if (values_.at(option).empty()) continue;
      line += (has_dash ? "=" : " ") + quote_for_shell(value);
    }
  }
  for (const std::string& flag : with) {
    if (!has(flag) || std::ranges::find(without, flag) != without.end()) line += " --" + flag;
  }
  return line;
}

std::vector<std::string> Arguments::words(const std::vector<std::string>& without,
                                          const std::vector<std::string>& with) const {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < command_.size();) {
    const std::size_t end = std::min(command_.find(' ', begin), command_.size());
    words.push_back(command_.substr(begin, end - begin));
    begin = end + 1;
  }
  for (const auto& [option, value] : in_order_) {
    const bool has_dash = value.starts_with("-");
    if (option == kOperand) {
      words.push_back((has_dash ? "./" : "") + value);
    } else if (std::ranges::find(without, option) == without.end()) {
      const bool has_value = !values_.at(option).empty();
      words.push_back("--" + option + (has_value ? "=" + value : ""));
    }
  }
  for (const std::string& flag : with) {
    if (!has(flag)) words.push_back("--" + flag);
  }
  return words;
}

Result<Arguments> parse_arguments(const CommandSpec& spec,
                                  const std::vector<std::string>& words,
                                  const std::string& program) {
  po::options_description all = known_options(spec);
  all.add_options()(kOperand, po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add(kOperand, -1);
  Arguments arguments;
  arguments.program_ = program;
  arguments.command_ = spec.name;
  try {
    // No abbreviated names: a misspelt option could be taken for another one.
    constexpr int kStyle =
        po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const auto parsed =
        po::command_line_parser(words).options(all).positional(positional).style(kStyle).run();
    for (const auto& option : parsed.options) {
      if (option.string_key == kOperand) {
        arguments.operands_.insert(arguments.operands_.end(), option.value.begin(),
                                   option.value.end());
        arguments.in_order_.emplace_back(kOperand, option.value.front());
        continue;
      }
      auto& values = arguments.values_[option.string_key];
      values.insert(values.end(), option.value.begin(), option.value.end());
      arguments.in_order_.emplace_back(option.string_key,
                                       option.value.empty() ? "" : option.value.front());
    }
  } catch (const po::unknown_option& e) {
    return unknown_option(spec, e.get_option_name());
  } catch (const po::error& e) {
    return usage_error(spec, fmt::format("{}, motley {}", e.what(), spec.name));
  }
  for (const OptionSpec& option : spec.options) {
    if (!option.repeated && arguments.values(option.name).size() > 1) {
      return usage_error(spec, fmt::format("--{} is given more than once", option.name));
    }
  }
  if (!arguments.help()) {
    const bool has_instead = !spec.instead.empty() && arguments.has(spec.instead);
    MOTLEY_TRY(check_operands(spec, arguments.operands_, has_instead));
  }
  return arguments;
}

std::string usage_line(const CommandSpec& spec) {
  std::string usage = fmt::format("motley {}", spec.name);
  for (const std::string& operand : spec.operands) usage += " " + operand;
  if (!spec.needs.empty()) usage += " " + spec.needs;
  return usage + " [options]";
}

std::vector<OptionSpec> options_with_help(const CommandSpec& spec) {
  std::vector<OptionSpec> options = spec.options;
  options.push_back({.name = "help", .value = "", .help = "show this text", .letter = 'h'});
  return options;
}

std::string config_note(const CommandSpec& spec) {
  if (std::ranges::find(spec.operands, "CONFIG") == spec.operands.end()) return "";
  return "CONFIG is a TOML file of the model, the data and the training: configs/ has examples,\n"
         "docs/formats/config.md lists all keys, and `motley config CONFIG` shows the values in "
         "use.\n";
}

std::string help_text(const CommandSpec& spec) {
  std::string text = fmt::format("{}: {}\n\nUsage: {}\n\n{}\nOptions\n{}", spec.name, spec.summary,
                                 usage_line(spec), spec.text, options_text(spec));
  if (const std::string note = config_note(spec); !note.empty()) text += "\n" + note;
  return text;
}

Result<std::int64_t> integer_value(const Arguments& arguments,
                                   const std::string& option,
                                   std::int64_t low,
                                   std::int64_t high) {
  const std::string& text = arguments.value(option);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--{} must be a whole number from {} to {}", option, low, high),
                 fmt::format("it is '{}'", text), ""};
  }
  return value;
}

Result<std::uint64_t> bytes_value(const Arguments& arguments, const std::string& option) {
  static const std::map<std::string, double> units = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KIB", 0x1p10}, {"MIB", 0x1p20}, {"GIB", 0x1p30}, {"TIB", 0x1p40}};
  constexpr double kBytesMax = 0x1p62;
  const std::string& text = arguments.value(option);
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  std::erase(unit, ' ');
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return std::toupper(c); });
  const auto found = units.find(unit);
  const double bytes = found == units.end() ? 0 : number * found->second;
  if (code == std::errc{} && bytes >= 1 && bytes <= kBytesMax) {
    return static_cast<std::uint64_t>(bytes);
  }
  return Error{ErrorCode::kUsage, fmt::format("--{} must be a size, as in 5GB or 500MiB", option),
               fmt::format("it is '{}'", text), ""};
}

Result<std::string> required_value(const Arguments& arguments, const std::string& option) {
  if (arguments.has(option) && !arguments.value(option).empty()) return arguments.value(option);
  return Error{ErrorCode::kUsage, fmt::format("motley {} needs --{}", arguments.command(), option),
               "", fmt::format("motley {} --help", arguments.command())};
}

Result<std::vector<std::pair<std::string, std::string>>> set_values(const Arguments& arguments) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : arguments.values("set")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{ErrorCode::kUsage, fmt::format("--set needs key=value, not '{}'", text), "",
                   "for example --set train.lr=1e-3"};
    }
    pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return pairs;
}

}  // namespace motley

#include "cli/guide/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace motley {
namespace {

using Words = std::vector<std::string>;

// Joins what the shell split: "--cluster" "=" "a" becomes "--cluster=a".
Words joined(const Words& words) {
  Words all;
  bool continues = false;
  for (const std::string& word : words) {
    const bool is_sign = !word.empty() && word.find_first_not_of("=:") == std::string::npos;
    if ((continues || is_sign) && !all.empty()) {
      all.back() += word;
    } else {
      all.push_back(word);
    }
    continues = is_sign;
  }
  return all;
}

// Searches in the tables.
class Completer {
 public:
  Completer(const std::vector<CommandSpec>& commands, const std::vector<ConfigKey>& keys)
      : commands_(commands), keys_(keys) {}

  // `before` without the last word.
  Completions run(Words before, const std::string& last) const {
    const bool explains = !before.empty() && before.front() == "help";
    if (explains) before.erase(before.begin());
    if (before.empty()) return first_words(explains, last.starts_with('-'));
    if (before.size() == 1 && is_family(before.front())) return second_words(before.front());
    for (const CommandSpec& spec : commands_) {
      const std::size_t count = spec.name.find(' ') == std::string::npos ? 1 : 2;
      if (before.size() < count || spec.name != fmt::format("{}{}", before[0], rest(before, count)))
        continue;
      // Of a command that is to be explained only the name is completed.
      if (explains) return {};
      before.erase(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(count));
      return argument(spec, before, last);
    }
    return {};
  }

 private:
  static std::string rest(const Words& before, std::size_t count) {
    return count == 2 ? " " + before[1] : "";
  }

  bool is_family(const std::string& word) const {
    return std::ranges::any_of(
        commands_, [&](const CommandSpec& spec) { return spec.name.starts_with(word + " "); });
  }

  // A word that begins several commands ("ckpt") is described by their second words.
  Completions first_words(bool explains, bool is_option) const {
    if (is_option && explains) return {};
    if (is_option) {
      return {{}, {}, {{"--help", "list the commands"}, {"--version", "print the version"}}};
    }
    Completions found;
    for (const CommandSpec& spec : commands_) {
      const std::size_t space = spec.name.find(' ');
      const std::string word = spec.name.substr(0, space);
      const std::string text =
          space == std::string::npos ? spec.summary : spec.name.substr(space + 1);
      auto known = std::ranges::find(found.candidates, word, &CompletedWord::word);
      if (known == found.candidates.end()) {
        found.candidates.push_back({word, text});
      } else {
        known->description += ", " + text;
      }
    }
    if (!explains) found.candidates.push_back({"help", "explain a command"});
    return found;
  }

  Completions second_words(const std::string& first) const {
    Completions found;
    for (const CommandSpec& spec : commands_) {
      if (!spec.name.starts_with(first + " ")) continue;
      found.candidates.push_back({spec.name.substr(first.size() + 1), spec.summary});
    }
    return found;
  }

  // The arguments of a command so far.
  struct Given {
    std::set<std::string> options;
    std::size_t operands = 0;
    const OptionSpec* needs_value = nullptr;  // the last word is its value
    bool has_dashes = false;                  // after "--", words are operands
  };

  static Given given(const std::vector<OptionSpec>& options, const Words& words) {
    Given all;
    for (const std::string& word : words) {
      if (all.needs_value != nullptr) {
        all.needs_value = nullptr;
      } else if (word == "--") {
        all.has_dashes = true;
      } else if (all.has_dashes || !word.starts_with('-') || word == "-") {
        ++all.operands;
      } else if (const OptionSpec* option = option_of(options, word); option != nullptr) {
        all.options.insert(option->name);
        if (!option->value.empty() && value_prefix(word).empty()) all.needs_value = option;
      }
    }
    return all;
  }

  // nullptr if there is no such option. `word`: "--stages", "--stages=2", "-o", "-ofile".
  static const OptionSpec* option_of(const std::vector<OptionSpec>& options,
                                     const std::string& word) {
    const bool is_long = word.starts_with("--");
    const std::string name = is_long ? word.substr(2, word.find('=') - 2) : "";
    const auto found = std::ranges::find_if(options, [&](const OptionSpec& option) {
      return is_long ? option.name == name
                     : word.size() > 1 && option.letter != 0 && option.letter == word[1];
    });
    return found == options.end() ? nullptr : &*found;
  }

  // What precedes a value in the word of its option: "--stages=", "-o"; empty without a value.
  static std::string value_prefix(const std::string& word) {
    if (word.starts_with("--")) {
      const std::size_t sign = word.find('=');
      return sign == std::string::npos ? "" : word.substr(0, sign + 1);
    }
    return word.size() > 2 ? word.substr(0, 2) : "";
  }

  Completions argument(const CommandSpec& spec, const Words& words, const std::string& last) const {
    const std::vector<OptionSpec> options = options_with_help(spec);
    const Given before = given(options, words);
    if (before.needs_value != nullptr) return value(before.needs_value->value, last, "");
    if (before.has_dashes || !last.starts_with('-')) {
      if (before.operands >= spec.operands.size()) return {};
      return value(spec.operands[before.operands], last, "");
    }
    const std::string prefix = value_prefix(last);
    if (!prefix.empty()) {
      const OptionSpec* option = option_of(options, last);
      if (option == nullptr || option->value.empty()) return {};
      return value(option->value, last.substr(prefix.size()), prefix);
    }
    Completions found;
    for (const OptionSpec& option : options) {
      if (before.options.contains(option.name) && !option.repeated) continue;
      found.candidates.push_back({"--" + option.name, option.help});
    }
    return found;
  }

  // The completions of a value or an operand. name: in the help; prefix: before it in its word.
  Completions value(const std::string& name, const std::string& text, std::string prefix) const {
    using enum CompletionKind;
    // RUN may be a run's folder or other weights, so files are completed too.
    static const std::map<std::string, CompletionKind> kPaths = {
        {"A", kFiles},    {"B", kFiles},      {"CONFIG", kFiles}, {"DIR", kFolders},
        {"FILE", kFiles}, {"FOLDER", kFiles}, {"OUT", kFiles},    {"PATH", kFiles},
        {"PLAN", kFiles}, {"RUN", kFiles}};
    // Values that are those of a configuration key.
    static const std::map<std::string, std::string> kChoicesOf = {{"KIND", "comm.transport"},
                                                                  {"WHEN", "comm.encrypt"}};
    if (const auto path = kPaths.find(name); path != kPaths.end()) {
      return {path->second, std::move(prefix), {}};
    }
    if (const auto key = kChoicesOf.find(name); key != kChoicesOf.end()) {
      return choices(key->second, std::move(prefix));
    }
    if (name == "KEY=VALUE") return key_or_choice(text, std::move(prefix));
    if (name == "SHELL") return shells();
    return {};
  }

  Completions key_or_choice(const std::string& text, std::string prefix) const {
    if (const std::size_t sign = text.find('='); sign != std::string::npos) {
      return choices(text.substr(0, sign), prefix + text.substr(0, sign + 1));
    }
    Completions found{CompletionKind::kKeys, std::move(prefix), {}};
    for (const ConfigKey& key : keys_) found.candidates.push_back({key.name + "=", key.help});
    return found;
  }

  Completions choices(const std::string& key, std::string prefix) const {
    Completions found{{}, std::move(prefix), {}};
    const auto known = std::ranges::find(keys_, key, &ConfigKey::name);
    if (known == keys_.end()) return found;
    for (const std::string& choice : known->choices) found.candidates.push_back({choice, ""});
    return found;
  }

  static Completions shells() {
    Completions found;
    for (const CompletionScript& script : completion_scripts()) {
      found.candidates.push_back({script.shell, ""});
    }
    return found;
  }

  const std::vector<CommandSpec>& commands_;
  const std::vector<ConfigKey>& keys_;
};

const char* kind_name(CompletionKind kind) {
  switch (kind) {
    case CompletionKind::kWords:
      return "words";
    case CompletionKind::kKeys:
      return "keys";
    case CompletionKind::kFiles:
      return "files";
    case CompletionKind::kFolders:
      return "folders";
  }
  return "words";
}

}  // namespace

Completions complete(const std::vector<std::string>& words,
                     const std::vector<CommandSpec>& commands,
                     const std::vector<ConfigKey>& keys) {
  Words before = joined(words);
  if (before.empty()) before.emplace_back();
  const std::string last = before.back();
  before.pop_back();
  return Completer(commands, keys).run(std::move(before), last);
}

std::string completion_text(const Completions& completion) {
  std::string text = fmt::format("{}\n{}\n", kind_name(completion.kind), completion.prefix);
  for (const CompletedWord& candidate : completion.candidates) {
    text += fmt::format("{}\t{}\n", candidate.word, candidate.description);
  }
  return text;
}

}  // namespace motley

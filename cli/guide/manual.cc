#include "cli/guide/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "cli/command.h"

namespace motley {
namespace {

std::string page_name(const CommandSpec& spec) {
  std::string name = "motley-" + spec.name;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string head(const std::string& name, const std::string& version, std::string_view summary) {
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} 1 \"\" \"Motley {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
                     troff_text(title), version, troff_text(name), troff_text(summary));
}

// Sets words between backquotes in bold.
std::string flowing_line(const std::string& line) {
  std::string shown;
  bool is_bold = false;
  std::istringstream parts(line);
  for (std::string part; std::getline(parts, part, '`');) {
    shown += is_bold ? "\\fB" + troff_text(part) + "\\fR" : troff_text(part);
    is_bold = !is_bold;
  }
  return shown + "\n";
}

// The text of a command's help: paragraphs, indented preformatted lines, and examples.
std::string body(const std::string& text) {
  std::string shown;
  std::istringstream lines(text);
  bool is_literal = false;
  for (std::string line; std::getline(lines, line);) {
    const bool is_indented = line.starts_with("  ");
    if (is_indented != is_literal && !line.empty()) {
      shown += is_indented ? ".PP\n.nf\n.RS 4\n" : ".RE\n.fi\n.PP\n";
      is_literal = is_indented;
    }
    if (line == "Example" || line == "Examples") {
      shown += ".SH EXAMPLES\n";
    } else if (line.empty()) {
      shown += ".PP\n";
    } else {
      shown += is_indented ? troff_text(line.substr(2)) + "\n" : flowing_line(line);
    }
  }
  return shown + (is_literal ? ".RE\n.fi\n" : "");
}

std::string options(const CommandSpec& spec) {
  std::string text = ".SH OPTIONS\n";
  for (const OptionSpec& option : options_with_help(spec)) {
    const std::string letter =
        option.letter == 0
            ? ""
            : fmt::format("\\fB{}\\fR, ", troff_text(std::string{'-', option.letter}));
    text += fmt::format(".TP\n{}\\fB{}\\fR", letter, troff_text("--" + option.name));
    if (!option.value.empty()) text += fmt::format(" \\fI{}\\fR", troff_text(option.value));
    text += "\n" + flowing_line(option.help);
  }
  return text;
}

// The sections after OPTIONS in the usual order; examples are already last in the help.
std::string command_page(const CommandSpec& spec, const std::string& version) {
  const std::size_t at = std::min(spec.text.find("Example"), spec.text.size());
  return fmt::format("{}.SH SYNOPSIS\n.B {}\n.SH DESCRIPTION\n{}.PP\n{}{}{}.SH SEE ALSO\n{}",
                     head(page_name(spec), version, spec.summary), troff_text(usage_line(spec)),
                     body(spec.text.substr(0, at)), body(config_note(spec)), options(spec),
                     body(spec.text.substr(at)), "\\fBmotley\\fR(1)\n");
}

std::string overview_page(const std::vector<CommandSpec>& commands, const std::string& version) {
  std::string text = head("motley", version, kPurpose);
  text +=
      ".SH SYNOPSIS\n"
      ".B motley COMMAND [options]\n"
      ".br\n"
      ".B motley help COMMAND\n"
      ".br\n"
      ".B motley \\-\\-version\n"
      ".SH COMMANDS\n"
      "Each has its own page.\n";
  for (const CommandSpec& spec : commands) {
    text += fmt::format(".TP\n\\fB{}\\fR(1)\n{}", troff_text(page_name(spec)),
                        flowing_line(spec.summary));
  }
  text += ".SH EXIT STATUS\n" + body(std::string(kExitStatuses));
  text +=
      ".SH FILES\n"
      ".TP\n"
      ".I /usr/share/doc/motley\n"
      "the folders configs and docs that these pages refer to, if Motley is installed from its "
      "package\n"
      ".TP\n"
      ".I ~/.cache/motley\n"
      "cached profiles of this machine\n";
  return text + ".SH SEE ALSO\n\\fBmotley\\-stage\\fR(1), \\fBssh\\fR(1)\n";
}

// For a program that only `motley` starts. `starts`: the occasion.
std::string worker_page(const std::string& program,
                        const std::string& version,
                        const std::string& summary,
                        const std::string& starts) {
  return head(program, version, summary) + ".SH SYNOPSIS\n.B " + troff_text(program) +
         "\n.SH DESCRIPTION\n" +
         body(starts +
              " and sends it\n"
              "commands over standard input. It has no arguments, and exits when that input "
              "does.\n\n"
              "`motley` expects it in its own folder, and on other machines in\n"
              "the folder of the same name, or in motley_dir of the cluster file.\n") +
         ".SH SEE ALSO\n\\fBmotley\\fR(1), \\fBmotley\\-launch\\fR(1)\n";
}

}  // namespace

std::string troff_text(std::string_view text) {
  // troff replaces some characters by typographic ones, which could not be copied from the page.
  static const std::map<char, std::string_view> kNames = {{'\\', "\\(rs"}, {'-', "\\-"},
                                                          {'\'', "\\(aq"}, {'`', "\\(ga"},
                                                          {'^', "\\(ha"},  {'~', "\\(ti"}};
  // A line that begins with a period or an apostrophe would be a request.
  std::string shown = text.starts_with('.') ? "\\&" : "";
  for (const char c : text) {
    const auto name = kNames.find(c);
    if (name == kNames.end()) {
      shown += c;
    } else {
      shown += name->second;
    }
  }
  return shown;
}

std::vector<ManualPage> manual_pages(const std::vector<CommandSpec>& commands,
                                     const std::string& version) {
  std::vector<ManualPage> pages = {
      {"motley.1", overview_page(commands, version)},
      {"motley-stage.1",
       worker_page(
           "motley-stage", version, "one worker of a training by motley",
           "`motley` starts one for each rank of a plan, here or by ssh on other machines,")},
      {"motley-store.1",
       worker_page(
           "motley-store", version, "manages a machine's part of a run for motley",
           "`motley` starts one on each machine that stores its part of a run in its own folder,\n"
           "before a training resumes and for `motley ckpt`,")}};
  for (const CommandSpec& spec : commands) {
    pages.push_back({page_name(spec) + ".1", command_page(spec, version)});
  }
  return pages;
}

}  // namespace motley

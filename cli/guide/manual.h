// The manual pages, generated from the command tables: the texts of --help, for `man`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"

namespace motley {

struct ManualPage {
  std::string file;  // "motley-ckpt-show.1"
  std::string text;  // troff source with the man(7) macros; UTF-8
};

// motley.1, motley-stage.1, motley-store.1, and one page per command. Deterministic.
[[nodiscard]] std::vector<ManualPage> manual_pages(const std::vector<CommandSpec>& commands,
                                                   const std::string& version);

// Escapes the text so that troff shows it unchanged, as a line or part of one.
[[nodiscard]] std::string troff_text(std::string_view text);

}  // namespace motley

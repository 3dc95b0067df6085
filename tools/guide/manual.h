// The manual's pages, made from the table of commands: what --help says, as `man` shows it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/arguments.h"

namespace motley {

struct ManualPage {
  std::string file;  // "motley-ckpt-show.1"
  std::string text;  // for troff with the macros of man(7); UTF-8
};

// motley.1, motley-stage.1, motley-store.1, and one page for each command. The same arguments give
// the same bytes.
[[nodiscard]] std::vector<ManualPage> manual_pages(const std::vector<CommandSpec>& commands,
                                                   const std::string& version);

// The text so that troff shows it as it stands, as one line or part of one.
[[nodiscard]] std::string troff_text(std::string_view text);

}  // namespace motley

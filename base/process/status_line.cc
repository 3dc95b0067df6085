#include "base/process/status_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

namespace motley {
namespace {

constexpr const char* kErase = "\r\x1b[K";
constexpr const char* kNoWrap = "\x1b[?7l";
constexpr const char* kWrap = "\x1b[?7h";

}  // namespace

bool is_live_terminal(std::FILE* out, const char* term) {
  return ::isatty(::fileno(out)) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

void StatusLine::show(const std::string& text) {
  std::fputs(fmt::format("{}{}{}{}", kErase, kNoWrap, text, kWrap).c_str(), out_);
  std::fflush(out_);
  on_screen_ = true;
}

void StatusLine::clear() {
  if (!on_screen_) return;
  std::fputs(kErase, out_);
  std::fflush(out_);
  on_screen_ = false;
}

}  // namespace motley

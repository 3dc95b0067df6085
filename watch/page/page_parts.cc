#include "watch/page/page_parts.h"

#include <map>
#include <string>

#include "base/check.h"

namespace motley {
namespace {

std::string_view type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  MOTLEY_CHECK(name.ends_with(".svg"), "a part of the page of no known type");
  return "image/svg+xml";
}

std::map<std::string, PagePart, std::less<>> parts_by_path() {
  std::map<std::string, PagePart, std::less<>> parts;
  for (const EmbeddedFile& file : embedded_files()) {
    const bool first = file.name == "index.html";
    parts[first ? "/" : "/" + std::string(file.name)] = {type_of(file.name), file.text};
  }
  return parts;
}

}  // namespace

const PagePart* find_page_part(std::string_view path) {
  static const auto parts = parts_by_path();
  const auto part = parts.find(path);
  return part == parts.end() ? nullptr : &part->second;
}

}  // namespace motley

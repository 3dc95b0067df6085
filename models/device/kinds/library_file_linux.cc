#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <system_error>

#include "models/device/kinds/library_file.h"

namespace motley {
namespace {

template <class Header>
bool read_at(std::ifstream& in, std::uint64_t offset, Header& header) {
  in.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(in.read(reinterpret_cast<char*>(&header), sizeof header));
}

}  // namespace

bool is_truncated(const std::filesystem::path& file) {
  std::error_code code;
  const std::uint64_t bytes = std::filesystem::file_size(file, code);
  std::ifstream in(file, std::ios::binary);
  ElfW(Ehdr) head;
  if (code || !read_at(in, 0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
    return false;
  if (head.e_phentsize != sizeof(ElfW(Phdr))) return false;
  for (std::uint64_t i = 0; i < head.e_phnum; ++i) {
    ElfW(Phdr) segment;
    if (!read_at(in, head.e_phoff + i * sizeof segment, segment)) return true;
    if (segment.p_type != PT_LOAD || segment.p_filesz == 0) continue;
    if (segment.p_filesz > bytes || segment.p_offset > bytes - segment.p_filesz) return true;
  }
  return false;
}

}  // namespace motley

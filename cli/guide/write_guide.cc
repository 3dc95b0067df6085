// Run by the build: write_guide FOLDER writes the manual pages into FOLDER/man1 and the shell
// completions into FOLDER/completions. Not installed.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "base/system/files.h"
#include "base/system/version.h"
#include "cli/guide/completion.h"
#include "cli/guide/guide.h"
#include "cli/guide/manual.h"

namespace motley {
namespace {

Result<void> write_guide(const std::filesystem::path& folder) {
  const std::filesystem::path manual = folder / "man1";
  const std::filesystem::path completions = folder / "completions";
  MOTLEY_TRY(make_folders(manual));
  MOTLEY_TRY(make_folders(completions));
  for (const ManualPage& page : manual_pages(all_specs(), motley_version())) {
    MOTLEY_TRY(write_file_atomic(manual / page.file, page.text));
  }
  for (const CompletionScript& script : completion_scripts()) {
    MOTLEY_TRY(write_file_atomic(completions / script.shell, script.text));
  }
  return {};
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_guide FOLDER\n", stderr);
    return 2;
  }
  try {
    const auto done = motley::write_guide(argv[1]);
    if (done.ok()) return 0;
    std::fputs(motley::describe(done.error()).c_str(), stderr);
    return static_cast<int>(done.error().code);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "write_guide: %s\n", e.what());
    return 1;
  }
}

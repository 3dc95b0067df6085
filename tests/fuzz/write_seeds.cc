// Writes a right plan and a right profile, from which fuzzing starts, into the folders
// DIR/plan and DIR/profile.
#include <cstdio>

#include "base/files.h"
#include "tests/partitioner/value_fixtures.h"

namespace motley {
namespace {

Result<void> write_seed(const std::filesystem::path& folder, const std::string& text) {
  MOTLEY_TRY(make_folders(folder));
  return write_file_atomic(folder / "right.json", text);
}

Result<void> write_seeds(const std::filesystem::path& folder) {
  MOTLEY_TRY(write_seed(folder / "plan", plan_text()));
  return write_seed(folder / "profile", profile_text());
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto written = motley::write_seeds(argv[1]);
  if (written.ok()) return 0;
  std::fputs(motley::describe(written.error()).c_str(), stderr);
  return static_cast<int>(written.error().code);
}

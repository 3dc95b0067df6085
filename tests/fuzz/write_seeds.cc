// Writes a right plan, a right profile and right topk messages, from which fuzzing starts, into the
// folders DIR/plan, DIR/profile and DIR/topk.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/files.h"
#include "compression/codec.h"
#include "tests/partitioner/value_fixtures.h"

namespace motley {
namespace {

Result<void> write_seed(const std::filesystem::path& file, const std::string& bytes) {
  MOTLEY_TRY(make_folders(file.parent_path()));
  return write_file_atomic(file, bytes);
}

// What tests/fuzz/topk_fuzz.cc reads: the codec's number, the count, the message.
Result<std::string> topk_seed(char number, const std::string& chain, std::uint16_t count) {
  MOTLEY_ASSIGN(const auto codec, make_codec(chain));
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i * i));
  std::vector<std::byte> wire(codec->bytes_max(count));
  wire.resize(codec->encode(values, wire));
  std::string seed(3 + wire.size(), number);
  std::memcpy(seed.data() + 1, &count, sizeof count);
  std::memcpy(seed.data() + 3, wire.data(), wire.size());
  return seed;
}

Result<void> write_seeds(const std::filesystem::path& folder) {
  MOTLEY_TRY(write_seed(folder / "plan" / "right.json", plan_text()));
  MOTLEY_TRY(write_seed(folder / "profile" / "right.json", profile_text()));
  MOTLEY_ASSIGN(const std::string gaps, topk_seed(0, "topk(0.05)", 600));
  MOTLEY_TRY(write_seed(folder / "topk" / "gaps", gaps));
  MOTLEY_ASSIGN(const std::string mask, topk_seed(1, "topk(0.4)|fp16", 5000));
  MOTLEY_TRY(write_seed(folder / "topk" / "mask", mask));
  MOTLEY_ASSIGN(const std::string packed, topk_seed(3, "topk(0.1)|int8|zstd(1)", 500));
  return write_seed(folder / "topk" / "packed", packed);
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

// Writes a right plan, a right profile, and a hello and messages of a right TCP peer, from which
// fuzzing starts, into the folders DIR/plan, DIR/profile and DIR/tcp.
#include <algorithm>
#include <cstdio>
#include <span>
#include <utility>

#include "base/files.h"
#include "comm/message_stream.h"
#include "comm/tcp_hello.h"
#include "tests/partitioner/value_fixtures.h"

namespace motley {
namespace {

Result<void> write_seed(const std::filesystem::path& folder, const std::string& text) {
  MOTLEY_TRY(make_folders(folder));
  return write_file_atomic(folder / "right", text);
}

std::string hello_bytes() {
  std::string bytes(kHelloBytes, '\0');
  write_hello({1, 2, Rank{1}, Rank{0}},
              std::as_writable_bytes(std::span(bytes)).first<kHelloBytes>());
  return bytes;
}

std::string message_bytes() {
  SendQueue queue(Rank{0});
  for (const Tag tag : {1, 0, 7}) {
    Buffer buffer(50);
    buffer.set_payload_bytes(50);
    std::ranges::fill(buffer.message(), std::byte{1});
    (void)queue.push(tag, std::move(buffer));
  }
  std::string bytes;
  for (auto pieces = queue.pieces(); !pieces[0].empty(); pieces = queue.pieces()) {
    for (const auto& piece : pieces) {
      bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    queue.taken(pieces[0].size() + pieces[1].size());
  }
  return bytes;
}

Result<void> write_seeds(const std::filesystem::path& folder) {
  MOTLEY_TRY(write_seed(folder / "plan", plan_text()));
  MOTLEY_TRY(write_seed(folder / "tcp" / "hello", hello_bytes()));
  MOTLEY_TRY(write_seed(folder / "tcp" / "messages", message_bytes()));
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

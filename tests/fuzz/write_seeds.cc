// Writes what is right, from which fuzzing starts, into a folder of DIR for each format.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/secret.h"
#include "base/system/files.h"
#include "comm/frames/frame_header.h"
#include "comm/tcp/tcp_hello.h"
#include "comm/tcp/tls_session.h"
#include "compression/codec_chain.h"
#include "tests/fuzz/frames.h"
#include "tests/plan/value_fixtures.h"

namespace motley {
namespace {

Result<void> write_seed(const std::filesystem::path& file, const std::string& bytes) {
  MOTLEY_TRY(make_folders(file.parent_path()));
  return write_file_atomic(file, bytes);
}

// What tests/fuzz/messages.h reads: the codec's number, the count, the message.
Result<std::string> message_seed(char number, const std::string& chain, std::uint16_t count) {
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

// What tests/fuzz/frame_fuzz.cc reads: everything is to be put right, then the message.
std::string frame_seed() {
  constexpr std::size_t kPayloadBytes = 40;
  std::string seed(1 + kFrameHeaderBytes + kPayloadBytes, 7);
  write_header({kFuzzEpoch, kFuzzPlan, Rank{0}, kFuzzFrame, 0, 0},
               std::as_writable_bytes(std::span(seed)).subspan<1, kFrameHeaderBytes>());
  return seed;
}

// What tests/fuzz/tcp_fuzz.cc reads as a hello.
std::string hello_seed() {
  std::string seed(1 + kHelloBytes, 1);
  write_hello({1, 3, Rank{2}, Rank{1}},
              std::as_writable_bytes(std::span(seed)).subspan<1, kHelloBytes>());
  return seed;
}

// What it reads as a stream: a message for tag 1, a beat, one that came early and a long one.
std::string stream_seed() {
  std::string seed(1, '\x10');
  const auto message = [&](char tag, char bytes) {
    seed += {'\x21', tag, bytes, bytes};  // a header with a length of one byte, then raw bytes
    seed += std::string(static_cast<std::size_t>(bytes), 'x');
  };
  message(1, 80);
  seed += '\x03';
  message(3, 70);
  message(1, 90);
  return seed;
}

// What tests/fuzz/tls_fuzz.cc reads: how a client begins, for the server.
Result<std::string> tls_seed() {
  MOTLEY_ASSIGN(const auto context, TlsContext::make(std::string(kSecretBytes, 'k'), "epoch 1"));
  TlsSession client(context, TlsSession::Role::kClient);
  MOTLEY_TRY(client.handshake());
  const auto said = client.outgoing();
  return std::string(1, 0) + std::string(reinterpret_cast<const char*>(said.data()), said.size());
}

Result<void> write_seeds(const std::filesystem::path& folder) {
  MOTLEY_TRY(write_seed(folder / "plan" / "right.json", plan_text()));
  MOTLEY_TRY(write_seed(folder / "profile" / "right.json", profile_text()));
  MOTLEY_ASSIGN(const std::string gaps, message_seed(0, "topk(0.05)", 600));
  MOTLEY_TRY(write_seed(folder / "topk" / "gaps", gaps));
  MOTLEY_ASSIGN(const std::string mask, message_seed(1, "topk(0.4)|fp16", 5000));
  MOTLEY_TRY(write_seed(folder / "topk" / "mask", mask));
  MOTLEY_ASSIGN(const std::string packed, message_seed(3, "topk(0.1)|int8|zstd(1)", 500));
  MOTLEY_TRY(write_seed(folder / "topk" / "packed", packed));
  MOTLEY_ASSIGN(const std::string factors, message_seed(1, "lowrank(4)|fp16", 5000));
  MOTLEY_TRY(write_seed(folder / "lowrank" / "factors", factors));
  MOTLEY_ASSIGN(const std::string plain, message_seed(0, "lowrank(1)", 40));
  MOTLEY_TRY(write_seed(folder / "lowrank" / "plain", plain));
  MOTLEY_TRY(write_seed(folder / "frame" / "right", frame_seed()));
  MOTLEY_TRY(write_seed(folder / "tcp" / "hello", hello_seed()));
  MOTLEY_TRY(write_seed(folder / "tcp" / "stream", stream_seed()));
  MOTLEY_TRY(write_seed(folder / "tls" / "changed", std::string("\2\x30\0\1", 4)));
  MOTLEY_ASSIGN(const std::string client, tls_seed());
  return write_seed(folder / "tls" / "client", client);
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

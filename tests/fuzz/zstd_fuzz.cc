// zstd at the end of a codec chain. The highest bit of the first byte selects whether the rest is
// a compressed frame, or the content of one, which no fuzzer would compress.
#include <string>
#include <vector>

#include "compression/formats/zstd_codec.h"
#include "tests/fuzz/codec_laws.h"
#include "tests/fuzz/one_input.h"

namespace motley {
namespace {

std::string packed(std::string_view input) {
  static ZstdPacker packer(1);
  const auto content_B = std::as_bytes(std::span(input.substr(kMessageHead)));
  std::vector<std::byte> frame_B(ZstdPacker::bytes_max(content_B.size()));
  const std::size_t bytes = packer.pack(content_B, frame_B);
  std::string message(input.substr(0, kMessageHead));
  return message.append(reinterpret_cast<const char*>(frame_B.data()), bytes);
}

}  // namespace
}  // namespace motley

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  static const auto codecs = motley::codecs_of(motley::kZstdChains);
  const bool pack = size >= motley::kMessageHead && (static_cast<unsigned char>(*data) & 0x80) != 0;
  const std::string input = pack ? motley::packed({data, size}) : std::string(data, size);
  return motley::check_property(
      [](std::string_view message) { return motley::wrong_with_message(codecs, message); }, input);
}

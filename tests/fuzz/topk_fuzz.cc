// The bytes of a topk message.
#include <array>
#include <memory>
#include <utility>

#include "compression/codec_chain.h"
#include "tests/fuzz/messages.h"

namespace motley {
namespace {

const Codec& codec_of(unsigned choice) {
  static const auto codecs = [] {
    std::array<std::unique_ptr<const Codec>, 4> all;
    const char* chains[] = {"topk(0.1)", "topk(0.5)|fp16", "topk(0.1)|int8",
                            "topk(0.1)|int8|zstd(1)"};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::move(make_codec(chains[i])).value();
    return all;
  }();
  return *codecs[choice % codecs.size()];
}

}  // namespace
}  // namespace motley

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  motley::check_input(data, size, motley::codec_of);
  return 0;
}

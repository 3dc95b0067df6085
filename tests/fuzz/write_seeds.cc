// Writes valid documents, from which fuzzing starts, into one folder of DIR per format.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/secret.h"
#include "base/system/files.h"
#include "comm/frames/frame_header.h"
#include "comm/tcp/tcp_hello.h"
#include "comm/tcp/tls_session.h"
#include "tests/fuzz/array_laws.h"
#include "tests/fuzz/checkpoint_laws.h"
#include "tests/fuzz/codec_laws.h"
#include "tests/fuzz/config_laws.h"
#include "tests/fuzz/data_laws.h"
#include "tests/fuzz/event_laws.h"
#include "tests/fuzz/file_laws.h"
#include "tests/fuzz/frames.h"
#include "tests/fuzz/join_laws.h"
#include "tests/fuzz/kept_profile_laws.h"
#include "tests/fuzz/metrics_laws.h"
#include "tests/fuzz/package_laws.h"
#include "tests/fuzz/picture_laws.h"
#include "tests/fuzz/plan_laws.h"
#include "tests/fuzz/reference_laws.h"
#include "tests/fuzz/report_laws.h"
#include "tests/fuzz/request_laws.h"
#include "tests/fuzz/token_laws.h"
#include "tests/fuzz/vote_laws.h"
#include "tests/plan/value_fixtures.h"

namespace motley {
namespace {

std::vector<float> some_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i * i));
  return values;
}

// Input of tests/fuzz/frame_fuzz.cc: everything is to be corrected, then the message.
std::string frame_seed() {
  constexpr std::size_t kPayloadBytes = 40;
  std::string seed(1 + kFrameHeaderBytes + kPayloadBytes, 7);
  write_header({kFuzzEpoch, kFuzzPlan, Rank{0}, kFuzzFrame, 0, 0},
               std::as_writable_bytes(std::span(seed)).subspan<1, kFrameHeaderBytes>());
  return seed;
}

// Input of tests/fuzz/tcp_fuzz.cc as a hello.
std::string hello_seed() {
  std::string seed(1 + kHelloBytes, 1);
  write_hello({1, 3, Rank{2}, Rank{1}},
              std::as_writable_bytes(std::span(seed)).subspan<1, kHelloBytes>());
  return seed;
}

// Its input as a stream: a message for tag 1, a beat, an early message and a long one.
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

// Input of tests/fuzz/tls_fuzz.cc: the beginning of a client's handshake, for the server.
Result<std::string> tls_seed() {
  MOTLEY_ASSIGN(const auto context, TlsContext::make(std::string(kSecretBytes, 'k'), "epoch 1"));
  TlsSession client(context, TlsSession::Role::kClient);
  MOTLEY_TRY(client.handshake());
  const auto said = client.outgoing();
  return std::string(1, 0) + std::string(reinterpret_cast<const char*>(said.data()), said.size());
}

using Seeds = std::map<std::string, std::string>;  // the contents of each file, by its path in the
                                                   // folder of all seeds

void add_documents(Seeds& seeds) {
  seeds["plan/right.json"] = plan_text();
  seeds["profile/right.json"] = profile_text();
  seeds["kept_profile/right.json"] = right_stored_text();
  seeds["links/right.json"] = links_text();
  seeds["pins/right"] = right_pins();
  seeds["config/all.toml"] = '\0' + config_to_toml(Config{});
  seeds["config/setting"] = "\1train.lr=1e-3";
  seeds["config/list"] = "\1parallel.cuts=[2, 5]";
  seeds["config/variable"] = "\1TRAIN_OPTIMIZER=\"sgd\"";
  seeds["safetensors/right"] = right_header_input();
  seeds["manifest/right.json"] = '\0' + format_manifest(right_manifest());
  seeds["manifest/body"] = '\1' + right_manifest_body();
  seeds["package/right.json"] = right_package();
  seeds["package/named.json"] = right_named_package();
  seeds["reference/right.json"] = right_reference_body();
  seeds["report/right.json"] = right_report();
  seeds["prediction/right.json"] = right_prediction();
  seeds["metrics/right"] = right_run_lines();
  seeds["tokens/short"] = right_short_tokens();
  seeds["tokens/long"] = right_long_tokens();
  seeds["npy/right"] = right_npy();
  seeds["megatron/right"] = right_megatron_index();
  seeds["meta/right"] = right_meta();
  seeds["text/wide"] = std::string("\xFF\xFEm\0o\0t\0\n\0", 10);
  seeds["idx/right"] = right_idx();
  seeds["picture/right.bmp"] = right_bmp();
  seeds["events/all"] = right_events();
  for (std::size_t i = 0; i < right_messages().size(); ++i) {
    seeds["events/" + std::to_string(i)] = right_messages()[i].dump() + "\r\n";
  }
}

Result<void> add_messages(Seeds& seeds) {
  seeds["request/right"] = right_request();
  seeds["join/right"] = right_join_messages();
  seeds["ticket/right"] = right_ticket();
  seeds["votes/right"] = right_votes();
  seeds["votes/evaluation"] = right_evaluation();
  seeds["topk/gaps"] = message_input(kTopkChains, 0, some_values(600));
  seeds["topk/mask"] = message_input(kTopkChains, 1, some_values(5000));
  seeds["topk/packed"] = message_input(kTopkChains, 3, some_values(500));
  for (std::size_t i = 0; i < kZstdChains.size(); ++i) {
    seeds["zstd/" + std::to_string(i)] = message_input(kZstdChains, i, some_values(300));
  }
  seeds["zstd/content"] = "\x80\x02" + std::string(9, '\0');
  seeds["frame/right"] = frame_seed();
  seeds["file/right"] = std::string(1, '\0') + file_input(99, OrderedFile().bytes());
  seeds["file/words"] = "\1" + text_of(aborted_part(right_words()));
  seeds["tcp/hello"] = hello_seed();
  seeds["tcp/stream"] = stream_seed();
  seeds["tls/changed"] = std::string("\2\x30\0\1", 4);
  MOTLEY_ASSIGN(seeds["tls/client"], tls_seed());
  return {};
}

Result<void> write_seeds(const std::filesystem::path& folder) {
  Seeds seeds;
  add_documents(seeds);
  MOTLEY_TRY(add_messages(seeds));
  for (const auto& [file, bytes] : seeds) {
    MOTLEY_TRY(make_folders((folder / file).parent_path()));
    MOTLEY_TRY(write_file_atomic(folder / file, bytes));
  }
  return {};
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

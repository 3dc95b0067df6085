#include "cluster/join/join_messages.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/json.h"
#include "base/json/json_table.h"
#include "cluster/join/join_frame.h"
#include "cluster/join/ticket.h"

namespace motley {
namespace {

constexpr std::int64_t kFileBytesMax = std::int64_t{1} << 50;
constexpr std::size_t kWordsMax = 16;
constexpr int kProcessesMax = 1 << 20;
constexpr double kReturnMax_s = 7 * 86400;
constexpr std::array kStreams = {"input", "output", "errors"};

constexpr auto kAbsolutePath = [](const JsonFields& fields) -> Result<std::string> {
  MOTLEY_ASSIGN(std::string path, fields.text());
  if (path.starts_with('/') && path.size() <= kJoinPathBytesMax) return path;
  return fields.bad("it is not an absolute path");
};

constexpr auto kNumericAddress = [](const JsonFields& fields) -> Result<std::string> {
  MOTLEY_ASSIGN(std::string address, fields.text());
  if (is_numeric_address(address)) return address;
  return fields.bad("it is not a numeric address");
};

constexpr auto kHash = [](const JsonFields& fields) -> Result<std::string> {
  MOTLEY_ASSIGN(std::string hash, fields.text());
  const bool is_hash =
      hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_hash ? Result<std::string>(hash) : fields.bad("it is not a SHA-256");
};

constexpr auto table_of(const JoinHello*) {
  return json::table<JoinHello>(
      json::header("motley-join", 1), json::required("name", &JoinHello::name, json::text()),
      json::required("proof", &JoinHello::proof, json::text()),
      json::required("files", &JoinHello::files, json::scalar(kAbsolutePath)),
      json::required("runs", &JoinHello::runs, json::scalar(kAbsolutePath)),
      json::required("address", &JoinHello::address, json::scalar(kNumericAddress)),
      json::optional("processes", &JoinHello::processes, json::whole(1, kProcessesMax)),
      json::optional("announced", &JoinHello::announced, json::whole(0, kProcessesMax)),
      json::optional("mark", &JoinHello::mark, json::text()));
}

constexpr auto table_of(const JoinWelcome*) {
  return json::table<JoinWelcome>(
      json::required("name", &JoinWelcome::name, json::word("-_")),
      json::required("return_s", &JoinWelcome::return_s, json::quantity(kReturnMax_s)),
      json::optional("silence_s", &JoinWelcome::silence_s, json::quantity(kReturnMax_s)));
}

constexpr auto table_of(const JoinRefusal*) {
  return json::table<JoinRefusal>(json::required("cause", &JoinRefusal::cause, json::text()),
                                  json::required("remedy", &JoinRefusal::remedy, json::text()));
}

constexpr auto table_of(const JoinWords*) {
  return json::table<JoinWords>(
      json::required("words", &JoinWords::words, json::list(json::text(), 1, kWordsMax)));
}

constexpr auto table_of(const StreamCredit*) {
  return json::table<StreamCredit>(
      json::required("stream", &StreamCredit::stream, json::one_of(kStreams)),
      json::required("bytes", &StreamCredit::bytes, json::whole(0, kFileBytesMax)));
}

constexpr auto table_of(const OfferedFile*) {
  return json::table<OfferedFile>(
      json::required("path", &OfferedFile::path, json::scalar(kAbsolutePath)),
      json::required("bytes", &OfferedFile::bytes, json::whole(0, kFileBytesMax)),
      json::required("sha256", &OfferedFile::sha256, json::scalar(kHash)));
}

constexpr auto table_of(const ManifestPart*) {
  constexpr const OfferedFile* kFile = nullptr;
  return json::table<ManifestPart>(
      json::required("files", &ManifestPart::files,
                     json::list(table_of(kFile), 0, kManifestPartFilesMax)),
      json::required("last", &ManifestPart::is_last, json::flag()));
}

constexpr auto table_of(const WantedPiece*) {
  return json::table<WantedPiece>(
      json::required("file", &WantedPiece::file, json::whole(0, kFileBytesMax)),
      json::required("offset", &WantedPiece::offset, json::whole(0, kFileBytesMax)),
      json::required("bytes", &WantedPiece::bytes, json::whole(1, kJoinBytesMax)));
}

constexpr auto table_of(const JoinExit*) {
  return json::table<JoinExit>(json::required("status", &JoinExit::status, json::whole(0, 255)),
                               json::required("signal", &JoinExit::signal, json::whole(0, 255)),
                               json::required("problem", &JoinExit::problem, json::text()));
}

}  // namespace

template <class Message>
std::string join_text(const Message& message) {
  constexpr const Message* kNone = nullptr;
  return table_of(kNone).write(message).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Message>
Result<Message> read_join_text(std::string_view text) {
  constexpr const Message* kNone = nullptr;
  const JsonSource source("a message");
  const Result<Json> json = parse_json(text, "a message");
  Result<Message> message = json.ok()
                                ? table_of(kNone).read(JsonFields(*json, source, ErrorCode::kPeer))
                                : Result<Message>(json.error());
  if (message.ok()) return message;
  return Error{ErrorCode::kPeer, "it violates the protocol", message.error().what,
               "use the same version of Motley on every machine"};
}

template std::string join_text(const JoinHello&);
template std::string join_text(const JoinWelcome&);
template std::string join_text(const JoinRefusal&);
template std::string join_text(const JoinWords&);
template std::string join_text(const StreamCredit&);
template std::string join_text(const ManifestPart&);
template std::string join_text(const WantedPiece&);
template std::string join_text(const JoinExit&);
template Result<JoinHello> read_join_text(std::string_view);
template Result<JoinWelcome> read_join_text(std::string_view);
template Result<JoinRefusal> read_join_text(std::string_view);
template Result<JoinWords> read_join_text(std::string_view);
template Result<StreamCredit> read_join_text(std::string_view);
template Result<ManifestPart> read_join_text(std::string_view);
template Result<WantedPiece> read_join_text(std::string_view);
template Result<JoinExit> read_join_text(std::string_view);

}  // namespace motley

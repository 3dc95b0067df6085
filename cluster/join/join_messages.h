// The JSON contents of the messages between a head and a machine (docs/formats/join.md), and of the
// requests on the head's own socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace motley {

// Of each path in a message.
inline constexpr std::size_t kJoinPathBytesMax = 1024;

// The machine's first message.
struct JoinHello {
  std::string name;   // the wanted one
  std::string proof;  // ticket_proof() in hexadecimal digits
  std::string files;  // absolute folder for files that the head sends
  std::string runs;   // absolute folder for its parts of runs
  // Numeric, its own end of the connection. The head sees another one if a router in between
  // translates addresses.
  std::string address;
  // Of a machine whose processes a launcher of processes has started: their number, and that of
  // all machines together, by its own environment. 1 and 0 = joined by a ticket.
  int processes = 1;
  int announced = 0;
  // The head's mark (RunInvitation), as the machine reads it in the run's folder; "" = it does not
  // see that folder.
  std::string mark;

  friend bool operator==(const JoinHello&, const JoinHello&) = default;
};

// The shortest silence of an end that counts as a lost connection.
inline constexpr double kJoinSilence_s = 8;

struct JoinWelcome {
  std::string name;                   // in the cluster
  double return_s = 0;                // after a lost connection, the machine dials again that long
  double silence_s = kJoinSilence_s;  // a longer silence of the other end is a lost connection

  friend bool operator==(const JoinWelcome&, const JoinWelcome&) = default;
};

struct JoinRefusal {
  std::string cause;
  std::string remedy;

  friend bool operator==(const JoinRefusal&, const JoinRefusal&) = default;
};

// A command: its words.
struct JoinWords {
  std::vector<std::string> words;

  friend bool operator==(const JoinWords&, const JoinWords&) = default;
};

// The receiver of a stream has passed bytes on, so the sender may send as many more.
struct StreamCredit {
  std::string stream;  // input | output | errors
  std::uint64_t bytes = 0;

  friend bool operator==(const StreamCredit&, const StreamCredit&) = default;
};

// A file that the head offers.
struct OfferedFile {
  std::string path;  // absolute, on the head
  std::uint64_t bytes = 0;
  std::string sha256;  // 64 lower-case hexadecimal digits

  friend bool operator==(const OfferedFile&, const OfferedFile&) = default;
};

// A part of a manifest; the last one says so.
struct ManifestPart {
  std::vector<OfferedFile> files;
  bool is_last = false;

  friend bool operator==(const ManifestPart&, const ManifestPart&) = default;
};

inline constexpr std::size_t kManifestPartFilesMax = 40;

// A request for a piece of a file.
struct WantedPiece {
  std::uint64_t file = 0;  // index in the manifest
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // at most kJoinBytesMax

  friend bool operator==(const WantedPiece&, const WantedPiece&) = default;
};

// The end of a command; of a transfer, whose problem is then "" if all files are there; or of the
// run, with its exit status.
struct JoinExit {
  int status = 0;
  int signal = 0;
  std::string problem;

  friend bool operator==(const JoinExit&, const JoinExit&) = default;
};

// The JSON text of a message, at most kJoinBytesMax bytes, and the message of an untrusted text;
// kPeer if it is none. Instantiated for the types above.
template <class Message>
[[nodiscard]] std::string join_text(const Message& message);
template <class Message>
[[nodiscard]] Result<Message> read_join_text(std::string_view text);

}  // namespace motley

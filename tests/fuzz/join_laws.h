// The properties of tickets and of the messages between a head and a machine that has joined.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/join/join_frame.h"
#include "cluster/join/join_messages.h"
#include "cluster/join/ticket.h"
#include "tests/fuzz/laws.h"

namespace motley {

inline std::string right_ticket() {
  return "motley1:40123@192.168.1.10,fd00::1/1765000000/" + std::string(64, 'a') + "/" +
         std::string(32, '5');
}

inline const std::vector<std::string>& fragments_of_tickets() {
  static const std::vector<std::string> fragments = {"motley1:",
                                                     "@",
                                                     ",",
                                                     "/",
                                                     ":",
                                                     "0",
                                                     "65535",
                                                     "65536",
                                                     "-1",
                                                     "::",
                                                     "%lo",
                                                     "127.0.0.1",
                                                     "::ffff:1.2.3.4",
                                                     std::string(64, 'F')};
  return fragments;
}

// A text is refused, or is exactly what ticket_text() writes, and no error shows the secret.
inline std::string wrong_with_ticket(std::string_view text) {
  const auto ticket = parse_ticket(text);
  if (!ticket.ok()) {
    const std::string said = describe(ticket.error());
    if (said.find(std::string(32, '5')) != std::string::npos) return "shows a secret: " + said;
    return wrong_error(ticket.error(), {ErrorCode::kUsage}, "ticket");
  }
  const std::string again = ticket_text(*ticket);
  if (text.find(again) == std::string_view::npos) return "is read as " + again;
  const auto read_again = parse_ticket(again);
  return read_again.ok() && *read_again == *ticket ? "" : "written and read, and not the same";
}

template <class Message>
std::string wrong_with_join_text(std::string_view text) {
  const auto message = read_join_text<Message>(text);
  if (!message.ok()) return wrong_error(message.error(), {ErrorCode::kPeer}, "protocol");
  const std::string written = join_text(*message);
  const auto again = read_join_text<Message>(written);
  return again.ok() && *again == *message ? "" : "written and read, and not the same";
}

inline std::string wrong_with_content(const JoinFrame& frame) {
  switch (frame.kind) {
    case JoinKind::kHello:
      return wrong_with_join_text<JoinHello>(frame.content);
    case JoinKind::kWelcome:
      return wrong_with_join_text<JoinWelcome>(frame.content);
    case JoinKind::kRefusal:
      return wrong_with_join_text<JoinRefusal>(frame.content);
    case JoinKind::kStart:
      return wrong_with_join_text<JoinWords>(frame.content);
    case JoinKind::kCredit:
      return wrong_with_join_text<StreamCredit>(frame.content);
    case JoinKind::kManifest:
      return wrong_with_join_text<ManifestPart>(frame.content);
    case JoinKind::kWant:
      return wrong_with_join_text<WantedPiece>(frame.content);
    case JoinKind::kExit:
    case JoinKind::kEnd:
      return wrong_with_join_text<JoinExit>(frame.content);
    default:
      return "";
  }
}

// One of each kind with a content of its own.
inline std::string right_join_messages() {
  const std::string hash(64, 'b');
  std::string bytes;
  for (const JoinFrame& frame : std::initializer_list<JoinFrame>{
           {JoinKind::kHello, 0,
            join_text(JoinHello{"box", hash, "/h/files", "/h/runs", "10.0.0.2"})},
           {JoinKind::kWelcome, 0, join_text(JoinWelcome{"box", 900})},
           {JoinKind::kRefusal, 0, join_text(JoinRefusal{"expired", "ask"})},
           {JoinKind::kStart, 1, join_text(JoinWords{{"work", "motley-stage", "2"}})},
           {JoinKind::kInput, 1, "{}\n"},
           {JoinKind::kCredit, 1, join_text(StreamCredit{"input", 65536})},
           {JoinKind::kExit, 1, join_text(JoinExit{3, 0, ""})},
           {JoinKind::kPing, 0, ""},
           {JoinKind::kManifest, 2, join_text(ManifestPart{{{"/data/a", 5, hash}}, true})},
           {JoinKind::kWant, 2, join_text(WantedPiece{0, 0, 5})},
           {JoinKind::kPiece, 2, "12345"}}) {
    bytes += encode_frame(frame);
  }
  return bytes;
}

inline const std::vector<std::string>& fragments_of_join_messages() {
  static const std::vector<std::string> fragments = {std::string(4, '\0'),
                                                     std::string("\xff\xff\xff\xff"),
                                                     "{}",
                                                     "null",
                                                     "\"words\":[",
                                                     "\"path\":\"/../../etc\"",
                                                     "1e999",
                                                     "-1",
                                                     "true",
                                                     "\"last\":",
                                                     std::string(5000, 'a')};
  return fragments;
}

// The bytes are divided into messages that, written again, are the same bytes.
inline std::string wrong_with_join_messages(std::string_view bytes) {
  JoinFrameReader reader;
  reader.add(bytes);
  std::string written;
  for (;;) {
    const auto frame = reader.next(kJoinBytesMax);
    if (!frame.ok()) return wrong_error(frame.error(), {ErrorCode::kPeer}, "protocol");
    if (!*frame) break;
    written += encode_frame(**frame);
    if (std::string wrong = wrong_with_content(**frame); !wrong.empty()) return wrong;
  }
  return bytes.starts_with(written) ? "" : "written again, other bytes";
}

}  // namespace motley

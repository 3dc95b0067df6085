// The properties of the messages of a file transfer, and a valid one of each.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/system/files.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/transfer/file_messages.h"
#include "checkpoint/transfer/received_file.h"
#include "tests/fuzz/laws.h"

namespace motley {

// An ordered file in a temporary folder.
class OrderedFile {
 public:
  OrderedFile() {
    std::string name = (std::filesystem::temp_directory_path() / "motley-file-XXXXXX").string();
    MOTLEY_CHECK(::mkdtemp(name.data()) != nullptr, "cannot make {}", name);
    folder_ = name;
    const std::vector<float> values = {1, 2, 3};
    const std::vector<TensorView> tensors = {{"p", {2}, std::span(values).first(2)},
                                             {"q", {1}, std::span(values).last(1)}};
    const auto path = folder_ / "model.safetensors";
    const auto written = write_safetensors(path, tensors, {{"format", "pt"}});
    const auto bytes = read_file(path);
    MOTLEY_CHECK(written.ok() && bytes.ok(), "cannot write {}", path.string());
    bytes_ = *bytes;
    order_.file = *written;
    order_.tensors = std::set<std::string>{"p", "q"};
  }

  OrderedFile(const OrderedFile&) = delete;
  OrderedFile& operator=(const OrderedFile&) = delete;

  ~OrderedFile() { std::filesystem::remove_all(folder_); }

  [[nodiscard]] const FileOrder& order() const { return order_; }

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

  // The size of its values, which are at its end.
  [[nodiscard]] static std::size_t value_bytes() { return 3 * sizeof(float); }

  [[nodiscard]] std::filesystem::path target() const { return folder_ / "target"; }

 private:
  std::filesystem::path folder_;
  std::string bytes_;
  FileOrder order_;
};

// The first byte of an input is the size of the pieces in which the rest arrives.
inline std::string file_input(char piece_bytes, const std::string& bytes) {
  return piece_bytes + bytes;
}

inline Result<void> receive_in_pieces(const OrderedFile& ordered,
                                      std::string_view bytes,
                                      std::size_t piece_bytes) {
  ReceivedFile file(ordered.order(), ordered.target(), nullptr);
  MOTLEY_TRY(file.begin(ordered.order().file.bytes));
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
    MOTLEY_TRY(file.take(std::as_bytes(std::span(bytes.substr(at, piece_bytes)))));
  }
  return file.finish();
}

// A file is refused and removed, or is complete with the values of the manifest.
inline std::string wrong_with_file(std::string_view input) {
  static const OrderedFile ordered;
  if (input.empty()) return "";
  const auto piece_bytes = std::size_t{1} + static_cast<unsigned char>(input.front());
  const std::string_view bytes = input.substr(1);
  const auto taken = receive_in_pieces(ordered, bytes, piece_bytes);
  if (!taken.ok()) {
    if (std::filesystem::exists(ordered.target())) return "a part of what was refused is left";
    return wrong_error(taken.error(), {ErrorCode::kCorrupt}, "model.safetensors");
  }
  const auto written = read_file(ordered.target());
  std::filesystem::remove(ordered.target());
  if (!written.ok() || *written != bytes) return "other bytes were written than came";
  if (bytes.size() != ordered.bytes().size()) return "a file of another size was taken";
  const auto values = [](std::string_view file) {
    return file.substr(file.size() - OrderedFile::value_bytes());
  };
  return values(bytes) == values(ordered.bytes()) ? "" : "other values were taken";
}

inline Error right_words() {
  return {ErrorCode::kCorrupt, "cannot write x", "the disk is full", "free space"};
}

inline std::string text_of(const Buffer& buffer) {
  const auto payload = buffer.payload();
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

// A received error can be printed, and sent again unchanged.
inline std::string wrong_words(const Error& words) {
  const Buffer said = aborted_part(words);
  const auto again = read_part(said.payload());
  if (!again.ok()) return "words cannot be said again: " + describe(words);
  if (in_full(again->why) != in_full(words)) return "words change when they are said again";
  return describe(words).size() < 2500 ? "" : "says too much: " + describe(words);
}

// A message is refused or valid.
inline std::string wrong_with_file_words(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  const auto part = read_part(bytes);
  if (!part.ok()) {
    const auto wrong = wrong_error(part.error(), {ErrorCode::kCorrupt}, "part of a file");
    if (!wrong.empty()) return wrong;
  } else if (part->kind == PartKind::kAborted) {
    if (const auto wrong = wrong_words(part->why); !wrong.empty()) return wrong;
  } else if (part->content.size() + kPartHeadBytes != bytes.size()) {
    return "a part's content is not all that came";
  }
  const auto answer = read_ack(bytes);
  if (!answer.ok()) return wrong_error(answer.error(), {ErrorCode::kCorrupt}, "answer");
  return answer->kind == AckKind::kWritten ? "" : wrong_words(answer->why);
}

}  // namespace motley

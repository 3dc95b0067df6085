// A file with random damage is accepted or refused with an error, and nothing else happens;
// tests/fuzz/ searches further with the same properties.
#include "tests/fuzz/file_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

RC_GTEST_PROP(DamagedFile, IsTakenOrRefused, ()) {
  const OrderedFile right;
  const auto input = [&](const std::string& bytes) {
    return file_input(*rc::gen::arbitrary<char>(), bytes);
  };
  RC_ASSERT(wrong_with_file(input(right.bytes())) == "");
  RC_ASSERT(wrong_with_file(input(damaged(right.bytes(), fragments_of_bytes()))) == "");
  RC_ASSERT(wrong_with_file(input(damaged(right.bytes(), fragments_of_text()))) == "");
}

RC_GTEST_PROP(DamagedFile, IsTakenWhereNothingIsDamaged, ()) {
  const OrderedFile right;
  const std::size_t piece_bytes = *rc::gen::inRange<std::size_t>(1, 300);
  const auto taken = receive_in_pieces(right, right.bytes(), piece_bytes);
  RC_ASSERT(taken.ok());
}

RC_GTEST_PROP(DamagedFileWords, AreReadOrRefused, ()) {
  const std::string right[] = {
      text_of(aborted_part(right_words())), text_of(ack_buffer({.took_us = 7})),
      text_of(ack_buffer({.kind = AckKind::kNotWritten, .why = right_words()}))};
  for (const std::string& words : right) {
    RC_ASSERT(wrong_with_file_words(words) == "");
    RC_ASSERT(wrong_with_file_words(damaged(words, fragments_of_bytes())) == "");
  }
}

}  // namespace
}  // namespace motley

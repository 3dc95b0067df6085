// Result<T>: a value, or an Error with a hint for the user.
//
// Two kinds of failure exist in Motley. An *expected* one (peer lost, bad file, bad option) travels
// as a Result. A *bug* ends the process through MOTLEY_CHECK (base/check.h). Exceptions of
// third-party libraries are caught in the one source file that wraps the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace motley {

// The kind of failure; each code is one exit status of the command line (docs/exit-status.md).
enum class ErrorCode {
  kInternal = 1,       // should not happen; carries the available details
  kUsage = 2,          // the command line
  kConfig = 3,         // configuration, cluster file or plan
  kPeer = 4,           // a machine or process cannot be reached, or was lost
  kUnauthorised = 5,   // not allowed
  kInfeasible = 6,     // no plan fits
  kCorrupt = 7,        // a checkpoint or file is damaged, or could not be written whole
  kData = 8,           // unusable training data
  kDiverged = 9,       // too many skipped steps in a row, or parameters that are not finite
  kInterrupted = 130,  // Ctrl-C
  kTerminated = 143,   // SIGTERM
};

// What is known about the peer of a kPeer error, as far as decisions depend on it.
enum class PeerState : std::uint8_t {
  kUnspecified,
  kLost,    // the connection to it ended
  kSilent,  // its message did not arrive in time
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string what;    // "<what>, <where>" in one line, no trailing full stop
  std::string cause;   // why; may be empty
  std::string remedy;  // what to do next; may be empty

  // Input of decisions; the texts above are only for display.
  PeerState peer_state = PeerState::kUnspecified;
  std::optional<int> peer = std::nullopt;  // its rank, if it is kLost
  std::string key = {};                    // the configuration key to change, if any
};

// Whether the error is a stop requested by a signal rather than a failure.
[[nodiscard]] bool is_stop(const Error& error);

// The text for the user: "motley: error: <what>\n  cause: …\n  try: …\n", or "motley: stopped: …".
[[nodiscard]] std::string describe(const Error& error);
// The same without the words before <what>.
[[nodiscard]] std::string in_full(const Error& error);

// The same error with "<context>: " put before `what`.
[[nodiscard]] Error with_context(Error error, const std::string& context);

// The same error with the configuration key to change.
[[nodiscard]] Error with_key(Error error, std::string key);

// A quotation of untrusted or long text for a message: its beginning, with '?' for control
// characters and "…" for the omitted rest.
[[nodiscard]] std::string excerpt(std::string_view text, std::size_t bytes_max = 80);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT

  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  [[nodiscard]] bool ok() const { return state_.index() == 0; }

  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  [[nodiscard]] T& value() & { return std::get<0>(state_); }

  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }

  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }

  T& operator*() & { return value(); }

  const T& operator*() const& { return value(); }

  T&& operator*() && { return std::move(*this).value(); }

  T* operator->() { return &value(); }

  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  [[nodiscard]] const Error& error() const& { return std::get<1>(state_); }

  [[nodiscard]] Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;

  Result(Error error) : error_(std::move(error)) {}  // NOLINT

  [[nodiscard]] bool ok() const { return !error_.has_value(); }

  explicit operator bool() const { return ok(); }

  // REQUIRES: !ok().
  [[nodiscard]] const Error& error() const& { return *error_; }

  [[nodiscard]] Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace motley

#define MOTLEY_CONCAT_INNER(a, b) a##b
#define MOTLEY_CONCAT(a, b) MOTLEY_CONCAT_INNER(a, b)
#define MOTLEY_ASSIGN_IMPL(tmp, lhs, expr)      \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp).error(); \
  lhs = std::move(tmp).value()

// MOTLEY_ASSIGN(auto plan, read_plan(path)): assigns the value, or returns the error.
#define MOTLEY_ASSIGN(lhs, expr) \
  MOTLEY_ASSIGN_IMPL(MOTLEY_CONCAT(motley_result_, __LINE__), lhs, expr)

// MOTLEY_TRY(write(path)): continues, or returns the error.
#define MOTLEY_TRY(expr)                                            \
  do {                                                              \
    if (auto motley_try_result = (expr); !motley_try_result.ok()) { \
      return std::move(motley_try_result).error();                  \
    }                                                               \
  } while (false)

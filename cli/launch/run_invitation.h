// The file RUN/invitation (docs/formats/join.md), by which a head and the machines that its
// launcher has started find each other in a folder that all of them see. For this user alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace motley {

struct InvitationText {
  std::string mark;    // random digits: a machine that shows them sees the folder
  std::string ticket;  // "" = the machines know a secret
};

class RunInvitation {
 public:
  // Replaces the file of an earlier start. kCorrupt if it cannot be written.
  [[nodiscard]] static Result<RunInvitation> write(const std::filesystem::path& run_dir,
                                                   const InvitationText& text);
  RunInvitation(RunInvitation&& other) noexcept;
  RunInvitation& operator=(RunInvitation&&) = delete;
  ~RunInvitation();  // removes the file, unless another start has replaced it

 private:
  RunInvitation(std::filesystem::path run_dir, std::string mark)
      : run_dir_(std::move(run_dir)), mark_(std::move(mark)) {}

  std::filesystem::path run_dir_;  // "" = moved from
  std::string mark_;
};

// Nothing if there is no file. kUnauthorised if another user could have written or read it;
// kCorrupt if it cannot be read.
[[nodiscard]] Result<std::optional<InvitationText>> read_invitation(
    const std::filesystem::path& run_dir);

}  // namespace motley

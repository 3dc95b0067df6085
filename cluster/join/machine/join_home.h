// JoinHome: the files of a joined machine, all below its cache folder (docs/formats/join.md): the
// contents that heads have sent, by hash; for each session its key and the view of the head's
// files; and the machine's parts of runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/system/owned_fd.h"
#include "cluster/join/join_identity.h"

namespace motley {

class JoinHome {
 public:
  // Creates the folders, for this user alone. `xdg_cache_home` and `home`: the environment's
  // values, nullptr = not set. `machine`: its name, for folders of its own, since machines of a
  // scheduler often share a home folder; "" = not shared. kConfig without any folder; kCorrupt if
  // the folders cannot be created; kUsage if another process has the session.
  [[nodiscard]] static Result<JoinHome> make(const char* xdg_cache_home,
                                             const char* home,
                                             const std::string& head_fingerprint,
                                             const std::string& machine = "");

  // This machine's key for the session: the stored one, so that a machine that is started again is
  // known to the head, or a new one, which is stored.
  [[nodiscard]] Result<JoinIdentity> identity() const;

  [[nodiscard]] std::filesystem::path objects() const { return join_ / "objects"; }

  [[nodiscard]] std::filesystem::path files() const { return session() / "files"; }

  [[nodiscard]] std::filesystem::path runs() const { return join_.parent_path() / "runs"; }

  // Removes the session's key and view. The contents stay for the next session.
  void end_session() const;

 private:
  JoinHome(std::filesystem::path join, std::string name)
      : join_(std::move(join)), name_(std::move(name)) {}

  [[nodiscard]] std::filesystem::path session() const { return join_ / "sessions" / name_; }

  [[nodiscard]] Result<void> lock_session();

  std::filesystem::path join_;
  std::string name_;  // of the session
  OwnedFd lock_;      // of the session, until this object is destroyed
};

}  // namespace motley

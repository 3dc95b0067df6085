// RunLock: the exclusive lock of a run folder; one launcher at a time.
//
// Each launch creates the next file of `launches/` (checkpoint/fencing_token.h) with O_EXCL, which
// succeeds for one launcher only, on NFS too. The highest number holds the folder until its file
// says that it is free, its process is known to be gone, or, if its process is not visible from
// here, the file has not been renewed for a while. That time is measured by this machine's clock
// alone, so clocks need not agree. The highest file is never removed, so numbers are unique, and a
// launcher that acts on an outdated view finds a higher number. Format: docs/formats/launches.md.
//
// A separate thread renews the file's time while the launcher measures, plans and trains. A
// launcher that was suspended, frozen or cut off from its disk may find the folder taken: it must
// then leave all of it unchanged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/result.h"

namespace motley {

class RunLock {
 public:
  struct Timing {
    double renew_s = 5;
    double stale_s = 20;  // time without a renewal, for launchers not visible from here
    // Time without a written byte, for workers that save after the end of their launcher.
    double saving_s = 60;
  };

  // Creates the folder if it is absent. kPeer, naming the holder and since when, if another
  // launcher holds it. May first watch such a launcher for stale_s, and wait for workers of one
  // that is gone while they save; reports that in `log`.
  [[nodiscard]] static Result<RunLock> acquire(const std::filesystem::path& run_dir,
                                               const Log& log,
                                               Timing timing);
  [[nodiscard]] static Result<RunLock> acquire(const std::filesystem::path& run_dir,
                                               const Log& log);

  // Locks another folder for a launch that already has its number: one machine's own part of the
  // run. nullopt if another process of that launch holds it. kPeer as acquire(), and if a launch of
  // this or a later number has used the folder (the launcher then needs a higher one).
  [[nodiscard]] static Result<std::optional<RunLock>> join(const std::filesystem::path& run_dir,
                                                           const std::string& launch,
                                                           const Log& log,
                                                           Timing timing);
  [[nodiscard]] static Result<std::optional<RunLock>> join(const std::filesystem::path& run_dir,
                                                           const std::string& launch,
                                                           const Log& log);
  RunLock(RunLock&&) noexcept;
  RunLock& operator=(RunLock&&) noexcept;
  ~RunLock();  // releases the folder

  // As launch_text.
  [[nodiscard]] const std::string& launch() const;
  [[nodiscard]] std::int64_t number() const;

  // Continues under a number above `least`, because other folders of the run have seen that one.
  // kPeer as acquire().
  [[nodiscard]] Result<void> advance_past(std::int64_t least, const Log& log);

  // Records that the launcher is lost: this process saves its step and ends, and other launchers
  // wait for that. REQUIRES: of join().
  void leave();

  // kPeer if another launcher holds the folder, or it no longer exists. Reads the files only if the
  // last check is too old to exclude another launcher, so calls in a loop are cheap.
  [[nodiscard]] Result<void> confirm();

 private:
  struct Impl;
  explicit RunLock(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley

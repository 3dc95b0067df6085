// RunLock: a run folder has one launcher at a time.
//
// Each launch makes the next file of `launches/` (checkpoint/launch_mark.h), which only one can do,
// on NFS too: O_EXCL. The one with the highest number holds the folder, until its file says that it
// is free, or its process is known to be gone, or, where its process cannot be seen from here,
// nothing has renewed the file for a while: by this machine's clock alone, so that clocks need not
// agree. The highest file is never removed, so a number is given once, and whoever took the folder
// for free too late finds a higher one. Format: docs/formats/launches.md.
//
// A thread of its own renews the file's time while the launcher measures, plans and trains. A
// launcher that was away (asleep, frozen, its disk gone) may find the folder taken: it must then
// leave everything in it alone.
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
    double stale_s = 20;  // without a sign of a launcher that cannot be seen from here
  };

  // Makes the folder where it is absent. kPeer, saying who holds it and since when, when another
  // launcher does. May watch such a one for stale_s first, and tells `log` of it.
  [[nodiscard]] static Result<RunLock> take(const std::filesystem::path& run_dir,
                                            const Log& log,
                                            Timing timing);
  [[nodiscard]] static Result<RunLock> take(const std::filesystem::path& run_dir, const Log& log);

  // Takes another folder for a launch that has its number already: one machine's own part of the
  // run. Nothing when another process of that launch has taken it. kPeer as take(), and where a
  // launch of this number or a later one has been there (the launcher then needs a higher one).
  [[nodiscard]] static Result<std::optional<RunLock>> join(const std::filesystem::path& run_dir,
                                                           const std::string& launch,
                                                           const Log& log,
                                                           Timing timing);
  [[nodiscard]] static Result<std::optional<RunLock>> join(const std::filesystem::path& run_dir,
                                                           const std::string& launch,
                                                           const Log& log);
  RunLock(RunLock&&) noexcept;
  RunLock& operator=(RunLock&&) noexcept;
  ~RunLock();  // gives the folder back

  // As launch_text.
  [[nodiscard]] const std::string& launch() const;
  [[nodiscard]] std::int64_t number() const;

  // Goes on under a number above `least`, because other folders of the run have seen that one.
  // kPeer as take().
  [[nodiscard]] Result<void> rise_above(std::int64_t least, const Log& log);

  // kPeer when another launcher has taken the folder, or it is there no more. Looks only where the
  // last look is too long ago for nobody to have come since, so it costs nothing in a loop.
  [[nodiscard]] Result<void> confirm();

 private:
  struct Impl;
  explicit RunLock(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace motley

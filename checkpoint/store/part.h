// A machine's part of a committed checkpoint, in a run folder of its own: the texts, and of the
// files those that were written or copied there. The launcher has committed before; what happens
// here decides only where the files are found.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/work_counter.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/store/texts.h"

namespace motley {

// What this launch has written of the step, in its partial folder, becomes the part. Done already:
// nothing happens. After a crash at any point the files are in the partial folder or in the part,
// and where the step was committed before, its old part or the new one is listed.
[[nodiscard]] Result<void> keep_part(const std::filesystem::path& run_dir,
                                     const std::string& launch,
                                     const CheckpointMetadata& texts);

// The same of what any launch has left of the step: of files with the manifest's sizes and hashes
// alone. `work` counts the bytes that are read. kInterrupted when stopped while it reads them: no
// file is lost by that, and another launch can adopt them.
[[nodiscard]] Result<void> adopt_part(const std::filesystem::path& run_dir,
                                      const std::string& launch,
                                      const CheckpointMetadata& texts,
                                      WorkCounter* work,
                                      const std::stop_token& stop = {});

}  // namespace motley

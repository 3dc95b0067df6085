#include "checkpoint/store/look.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "base/system/process_identity.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/launch_record.h"
#include "checkpoint/save/space.h"
#include "checkpoint/store/folder_id.h"
#include "checkpoint/store/whole_file.h"

namespace motley {
namespace {

// Adds the step's metadata to the answer, or the reason why it cannot be read.
void tell_texts(const CheckpointInfo& checkpoint, StoreAnswer& answer) {
  constexpr std::size_t kReasonBytesMax = 200;
  Result<CheckpointMetadata> texts = read_texts(checkpoint.folder);
  if (!texts.ok()) {
    const Error& error = texts.error();
    answer.untold = excerpt(error.cause.empty() ? error.what : error.cause, kReasonBytesMax);
  } else if (texts->step() != checkpoint.step) {
    answer.untold = fmt::format("it is of step {}", texts->step());
  } else {
    answer.texts = *std::move(texts);
  }
}

}  // namespace

WantedStep wanted_of(const CheckpointMetadata& texts) {
  WantedStep wanted{texts.step(), tensor_files(texts.manifest)};
  for (WrittenFile& file : wanted.files) file.tensor_hashes.clear();
  return wanted;
}

Result<StoreAnswer> look_into_store(const StorePlace& place,
                                    const StoreQuestion& question,
                                    WorkCounter* work) {
  StoreAnswer answer{.place = place, .free_bytes = free_bytes(place.dir)};
  MOTLEY_ASSIGN(answer.run, read_run_id(place.dir));
  answer.last_launch = last_launch(place.dir);
  if (!place.is_shared) {
    // If the process is not visible from here, the rank that locks the folder detects it.
    const auto last = read_launch_record(place.dir, answer.last_launch);
    const bool is_held =
        last && last->is_known && !last->is_free && fate_of(last->process) == ProcessFate::kRuns;
    if (is_held) answer.held_by = describe_launch(*last);
  }
  for (const CheckpointInfo& checkpoint : list_checkpoints(place.dir)) {
    answer.steps.push_back(checkpoint.step);
    // Another folder may provide the metadata if this one's is damaged.
    if (checkpoint.step == question.texts_of) tell_texts(checkpoint, answer);
  }
  if (!question.wanted) return answer;
  const WantedStep& wanted = *question.wanted;
  std::optional<WorkCounter::Task> verifying;
  if (work != nullptr) {
    verifying.emplace(*work, "verifying its part of the checkpoint",
                      bytes_to_read(place.dir, wanted.step, wanted.files));
  }
  for (const WrittenFile& file : wanted.files) {
    MOTLEY_ASSIGN(const FoundFile found, find_file(place.dir, wanted.step, file, work));
    if (found.whole) {
      answer.whole.push_back(file.name);
    } else if (found.damaged) {
      answer.damaged.push_back(file.name);
    }
  }
  return answer;
}

}  // namespace motley

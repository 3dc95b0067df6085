#include "checkpoint/store/look.h"

#include <utility>

#include "checkpoint/checkpoint.h"
#include "checkpoint/lock/launch_record.h"
#include "checkpoint/save/space.h"
#include "checkpoint/store/whole_file.h"

namespace motley {

Result<StoreAnswer> look_into_store(const StorePlace& place,
                                    const StoreQuestion& question,
                                    WorkCounter* work) {
  StoreAnswer answer{.place = place, .free_bytes = free_bytes(place.dir)};
  answer.last_launch = last_launch(place.dir);
  if (!place.is_shared) {
    if (const auto held = launch_under_way(place.dir)) answer.held_by = describe_launch(*held);
  }
  for (const CheckpointInfo& checkpoint : list_checkpoints(place.dir)) {
    answer.steps.push_back(checkpoint.step);
    if (checkpoint.step != question.texts_of) continue;
    MOTLEY_ASSIGN(answer.texts, read_texts(checkpoint.folder));
  }
  if (!question.wanted) return answer;
  const WantedStep& wanted = *question.wanted;
  for (const WrittenFile& file : wanted.files) {
    const FoundFile found = find_file(place.dir, wanted.step, file, work);
    if (found.whole) {
      answer.whole.push_back(file.name);
    } else if (found.damaged) {
      answer.damaged.push_back(file.name);
    }
  }
  return answer;
}

}  // namespace motley

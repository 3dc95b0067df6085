#include "data/resident_bytes.h"

#include "data/corpus.h"
#include "data/files/cifar_files.h"
#include "data/files/idx_files.h"
#include "data/files/picture_folder.h"
#include "data/held_out_path.h"

namespace motley {

std::int64_t resident_data_bytes(const DataConfig& data, const SampleFormat& sample) {
  if (data.path.empty()) return 0;
  if (has_held_out_path(data)) {
    DataConfig train = data;
    train.holdout_path.clear();
    return resident_data_bytes(train, sample) + resident_data_bytes(held_out_data(data), sample);
  }
  if (data.kind == "text") return static_cast<std::int64_t>(text_memory_bytes(data));
  const bool may_be_pictures =
      data.kind == "images" && !holds_idx(data.path) && !holds_cifar(data.path);
  return may_be_pictures ? static_cast<std::int64_t>(
                               picture_folder_bytes(data.path, sample.inputs.front().tensor.shape))
                         : 0;
}

}  // namespace motley

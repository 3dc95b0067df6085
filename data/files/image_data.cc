#include "data/files/image_data.h"

#include <fmt/format.h>

#include <string>
#include <system_error>

#include "data/files/cifar_files.h"
#include "data/files/idx_files.h"
#include "data/files/picture_folder.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

struct UnusableForm {
  const char* name;
  const char* cause;
  const char* remedy;
};

// Common forms that cannot be read.
constexpr UnusableForm kUnusableForms[] = {
    {"train-images-idx3-ubyte.gz", "its files are compressed", "gunzip them"},
    {"train-images.idx3-ubyte.gz", "its files are compressed", "gunzip them"},
    {"cifar-10-binary.tar.gz", "it contains an archive", "unpack it: tar xzf"},
    {"cifar-100-binary.tar.gz", "it contains an archive", "unpack it: tar xzf"},
    {"data_batch_1", "it contains the Python version of CIFAR", "use the binary version"},
    {"inputs.npy", "it contains arrays", "set data.kind = \"arrays\""},
};

// Of a held-out set whose form is not that of the training data.
Error other_form(const fs::path& folder, const char* form) {
  return {ErrorCode::kData, fmt::format("no {} in {}", form, folder.string()),
          fmt::format("the training data has {}", form),
          "use images of the same form for training and evaluation"};
}

Error no_images(const fs::path& folder) {
  const std::string what = fmt::format("no images in {}", folder.string());
  std::error_code code;
  if (!fs::is_directory(folder, code)) {
    return {ErrorCode::kData, what, "it is not a readable folder",
            "set data.path to a folder of images"};
  }
  for (const UnusableForm& form : kUnusableForms) {
    if (fs::exists(folder / form.name, code)) {
      return {ErrorCode::kData, what, form.cause, form.remedy};
    }
  }
  return {ErrorCode::kData, what,
          "expected: train-images-idx3-ubyte (MNIST), data_batch_1.bin (CIFAR-10), train.bin "
          "(CIFAR-100), sub-folders of pictures",
          "correct data.path"};
}

}  // namespace

Result<ExampleFiles> open_image_data(const fs::path& folder,
                                     std::span<const std::int64_t> shape,
                                     bool skips_damaged,
                                     ProgressCounter* work) {
  if (holds_idx(folder)) return open_idx_folder(folder);
  if (holds_cifar(folder)) return open_cifar_folder(folder);
  if (holds_pictures(folder)) return open_picture_folder(folder, shape, skips_damaged, work);
  return no_images(folder);
}

Result<ExampleFiles> open_held_out_images(const fs::path& folder,
                                          const fs::path& train_folder,
                                          std::span<const std::int64_t> shape,
                                          bool skips_damaged,
                                          ProgressCounter* work) {
  if (holds_idx(train_folder)) {
    if (!holds_idx_held_out(folder)) return other_form(folder, "IDX files");
    return open_idx_held_out(folder);
  }
  if (holds_cifar(train_folder)) {
    if (!holds_cifar_held_out(folder)) return other_form(folder, "CIFAR files");
    return open_cifar_held_out(folder);
  }
  if (!holds_pictures(folder)) return other_form(folder, "sub-folders of pictures");
  return open_held_out_pictures(folder, train_folder, shape, skips_damaged, work);
}

}  // namespace motley

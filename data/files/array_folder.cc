#include "data/files/array_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "data/files/npy_header.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// "eval_inputs.input_ids.npy"
std::string input_file(const std::string& prefix, const std::string& name) {
  return prefix + (name.empty() ? "inputs.npy" : fmt::format("inputs.{}.npy", name));
}

// Opens arrays and holds the storage of their columns.
class ArrayFolder {
 public:
  ArrayFolder(const fs::path& folder, const std::vector<std::string>& names)
      : folder_(folder), names_(names) {}

  // The inputs' files with this prefix, and PREFIXtargets.npy.
  Result<Examples> open_part(const std::string& prefix) {
    std::vector<Column> inputs;
    for (const std::string& name : names_) {
      MOTLEY_TRY(check_present(prefix, name));
      MOTLEY_ASSIGN(Column column, open_column(input_file(prefix, name)));
      inputs.push_back(std::move(column));
    }
    MOTLEY_ASSIGN(Column targets, open_column(prefix + "targets.npy"));
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k].size() == targets.size()) continue;
      return apart(input_file(prefix, names_[k]), prefix + "targets.npy",
                   fmt::format("{} inputs and {} targets", inputs[k].size(), targets.size()));
    }
    return Examples{std::move(inputs), std::move(targets)};
  }

  // Whether there is a file of the held-out part.
  [[nodiscard]] bool has_held_out() const {
    return has("eval_targets.npy") || std::ranges::any_of(names_, [&](const std::string& name) {
             return has(input_file("eval_", name));
           });
  }

  [[nodiscard]] Result<void> check_alike(const std::string& file,
                                         const Column& train,
                                         const Column& held_out) const {
    if (train.type() == held_out.type() && std::ranges::equal(train.shape(), held_out.shape())) {
      return {};
    }
    return apart(file, "eval_" + file,
                 fmt::format("their samples are {} and {}", kind_text(train), kind_text(held_out)));
  }

  [[nodiscard]] Result<void> check_alike(const Examples& train, const Examples& held_out) const {
    for (std::size_t k = 0; k < names_.size(); ++k) {
      MOTLEY_TRY(check_alike(input_file("", names_[k]), train.inputs[k], held_out.inputs[k]));
    }
    return check_alike("targets.npy", train.targets, held_out.targets);
  }

  // Moves the storage out; the object must not be used afterwards.
  ExampleFiles take(Examples train, std::optional<Examples> held_out) {
    return {std::move(storage_), std::move(train), std::move(held_out)};
  }

 private:
  [[nodiscard]] bool has(const std::string& name) const {
    std::error_code code;
    return fs::exists(folder_ / name, code);
  }

  // A folder that was written for a model with other inputs.
  [[nodiscard]] Result<void> check_present(const std::string& prefix,
                                           const std::string& name) const {
    const std::string other = prefix + "inputs.npy";
    if (name.empty() || has(input_file(prefix, name)) || !has(other)) return {};
    return Error{ErrorCode::kData,
                 fmt::format("no {} in {}", input_file(prefix, name), folder_.string()),
                 fmt::format("it has {}, and the model takes inputs by name: {}", other,
                             fmt::join(names_, ", ")),
                 "save an array for each of them"};
  }

  [[nodiscard]] Error apart(const std::string& one,
                            const std::string& other,
                            const std::string& cause) const {
    return {ErrorCode::kData,
            fmt::format("{} and {} do not match, {}", one, other, folder_.string()), cause,
            "save both again; their first dimension is the number of samples"};
  }

  static std::string kind_text(const Column& column) {
    return fmt::format("{} of {}", shape_text(column.shape()), element_name(column.type()));
  }

  // A missing file, with the names of those that are there instead.
  [[nodiscard]] Error missing(const std::string& name) const {
    const std::string what = fmt::format("no array {}", (folder_ / name).string());
    std::error_code code;
    if (!fs::is_directory(folder_, code)) {
      return {ErrorCode::kData, what, "it is not a readable folder",
              "set data.path to the folder with inputs.npy and targets.npy"};
    }
    std::vector<std::string> arrays;
    for (auto it = fs::directory_iterator(folder_, code); !code && it != fs::directory_iterator();
         it.increment(code)) {
      if (it->path().extension() == ".npy") arrays.push_back(it->path().filename().string());
    }
    constexpr std::size_t kNamesMax = 8;
    std::ranges::sort(arrays);
    arrays.resize(std::min(arrays.size(), kNamesMax));
    return {ErrorCode::kData, what,
            arrays.empty() ? "it has no .npy file"
                           : fmt::format("it has {}",
                                         excerpt(fmt::format("{}", fmt::join(arrays, ", ")), 400)),
            "save the inputs and the targets of all samples as inputs.npy and targets.npy"};
  }

  Result<Column> open_column(const std::string& name) {
    const fs::path path = folder_ / name;
    if (!has(name)) return missing(name);
    MOTLEY_ASSIGN(const auto file, storage_.map(path));
    MOTLEY_ASSIGN(NpyHeader header, parse_npy(file, path.string()));
    auto& shape = header.shape;
    if (shape.empty() || std::ranges::find(shape, 0) != shape.end()) {
      return Error{ErrorCode::kData, fmt::format("no samples in {}", path.string()),
                   fmt::format("its shape is {}", shape_text(shape)),
                   "save an array whose first dimension is the number of samples"};
    }
    const auto samples = static_cast<std::uint64_t>(shape.front());
    shape.erase(shape.begin());
    const auto bytes = file.subspan(header.data_begin);
    storage_.add_content(bytes);
    return Column(header.type, std::move(shape),
                  {{path.string(), bytes, samples, bytes.size() / samples}});
  }

  fs::path folder_;
  std::vector<std::string> names_;
  ExampleStorage storage_;
};

}  // namespace

Result<ExampleFiles> open_array_folder(const fs::path& folder,
                                       const std::vector<std::string>& names) {
  ArrayFolder arrays(folder, names);
  MOTLEY_ASSIGN(Examples train, arrays.open_part(""));
  if (!arrays.has_held_out()) return arrays.take(std::move(train), std::nullopt);
  MOTLEY_ASSIGN(Examples held_out, arrays.open_part("eval_"));
  MOTLEY_TRY(arrays.check_alike(train, held_out));
  return arrays.take(std::move(train), std::move(held_out));
}

}  // namespace motley

#include "data/files/array_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "data/files/npy_header.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// Opens arrays and holds the storage of their columns.
class ArrayFolder {
 public:
  explicit ArrayFolder(const fs::path& folder) : folder_(folder) {}

  // PREFIXinputs.npy and PREFIXtargets.npy.
  Result<Examples> open_pair(const std::string& prefix) {
    MOTLEY_ASSIGN(Column inputs, open_column(prefix + "inputs.npy"));
    MOTLEY_ASSIGN(Column targets, open_column(prefix + "targets.npy"));
    if (inputs.size() != targets.size()) {
      return apart(prefix + "inputs.npy", prefix + "targets.npy",
                   fmt::format("{} inputs and {} targets", inputs.size(), targets.size()));
    }
    return Examples{std::move(inputs), std::move(targets)};
  }

  [[nodiscard]] bool has(const std::string& name) const {
    std::error_code code;
    return fs::exists(folder_ / name, code);
  }

  [[nodiscard]] Error apart(const std::string& one,
                            const std::string& other,
                            const std::string& cause) const {
    return {ErrorCode::kData,
            fmt::format("{} and {} do not match, {}", one, other, folder_.string()), cause,
            "save both again; their first dimension is the number of samples"};
  }

  // Moves the storage out; the object must not be used afterwards.
  ExampleFiles take(Examples train, std::optional<Examples> held_out) {
    return {std::move(storage_), std::move(train), std::move(held_out)};
  }

 private:
  Result<Column> open_column(const std::string& name) {
    const fs::path path = folder_ / name;
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
  ExampleStorage storage_;
};

bool is_alike(const Column& a, const Column& b) {
  return a.type() == b.type() && std::ranges::equal(a.shape(), b.shape());
}

std::string kind_text(const Column& column) {
  return fmt::format("{} of {}", shape_text(column.shape()), element_name(column.type()));
}

}  // namespace

Result<ExampleFiles> open_array_folder(const fs::path& folder) {
  ArrayFolder arrays(folder);
  MOTLEY_ASSIGN(Examples train, arrays.open_pair(""));
  if (!arrays.has("eval_inputs.npy") && !arrays.has("eval_targets.npy")) {
    return arrays.take(std::move(train), std::nullopt);
  }
  MOTLEY_ASSIGN(Examples held_out, arrays.open_pair("eval_"));
  if (!is_alike(train.inputs, held_out.inputs)) {
    return arrays.apart("inputs.npy", "eval_inputs.npy",
                        fmt::format("their samples are {} and {}", kind_text(train.inputs),
                                    kind_text(held_out.inputs)));
  }
  if (!is_alike(train.targets, held_out.targets)) {
    return arrays.apart("targets.npy", "eval_targets.npy",
                        fmt::format("their samples are {} and {}", kind_text(train.targets),
                                    kind_text(held_out.targets)));
  }
  return arrays.take(std::move(train), std::move(held_out));
}

}  // namespace motley

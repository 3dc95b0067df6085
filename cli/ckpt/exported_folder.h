// The output of `motley ckpt export`: tensors and their names, the configuration, and the files
// beside them.
#pragma once

#include <vector>

#include "base/result.h"
#include "checkpoint/convert/weights_folder.h"
#include "cli/arguments.h"
#include "cli/ckpt/package_export.h"
#include "cli/ckpt/weights_inputs.h"

namespace motley {

// For our checkpoints and known model families, exactly the model's parameters, without additional
// buffers; for other weights all tensors. `averaged`: the averages of train.ema in place of
// parameters that have one; kConfig if none has.
[[nodiscard]] Result<std::vector<StoredTensor>> exported_tensors(const OpenedWeights& weights,
                                                                 bool averaged);

// The tensors of `stored` and those that `package` adds (nullptr: not a package), in their own
// types with `as_stored` (PackageExport). `as_adapter`: with peft's names, and nothing added.
// REQUIRES: all arguments outlive the result.
[[nodiscard]] std::vector<NewTensor> exported_values(const OpenedWeights& weights,
                                                     const std::vector<StoredTensor>& stored,
                                                     const PackageExport* package,
                                                     bool as_adapter,
                                                     bool as_stored);

// The same as a folder, in adapter format if the package is an adapter, according to --config,
// --tokenizer and --max-file.
[[nodiscard]] Result<WeightsFolder> exported_folder(const Arguments& arguments,
                                                    const OpenedWeights& weights,
                                                    const std::vector<StoredTensor>& stored,
                                                    const PackageExport* package,
                                                    const FormatRule& rule);

}  // namespace motley

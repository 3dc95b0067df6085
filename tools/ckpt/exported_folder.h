// What `motley ckpt export` writes: which tensors under which names, the configuration and the
// files beside them.
#pragma once

#include <vector>

#include "base/result.h"
#include "checkpoint/convert/weights_folder.h"
#include "tools/arguments.h"
#include "tools/ckpt/package_export.h"
#include "tools/ckpt/weights_inputs.h"

namespace motley {

// Of weights that are ours or of a family of ours exactly the model's parameters, without buffers
// that lie beside; of others all.
[[nodiscard]] Result<std::vector<StoredTensor>> exported_tensors(const OpenedWeights& weights);

// Those, and what `package` (nullptr: it is none) adds, in its own types with `as_stored`
// (PackageExport); `as_adapter`: under peft's names, and nothing added. REQUIRES: all arguments
// outlive what is returned.
[[nodiscard]] std::vector<NewTensor> exported_values(const OpenedWeights& weights,
                                                     const std::vector<StoredTensor>& stored,
                                                     const PackageExport* package,
                                                     bool as_adapter,
                                                     bool as_stored);

// The same as a folder, an adapter's where the package is one, as --config, --tokenizer and
// --max-file have it.
[[nodiscard]] Result<WeightsFolder> exported_folder(const Arguments& arguments,
                                                    const OpenedWeights& weights,
                                                    const std::vector<StoredTensor>& stored,
                                                    const PackageExport* package,
                                                    const NumberRule& rule);

}  // namespace motley

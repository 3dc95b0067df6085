// The tensors of a run's checkpoint.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/json.h"
#include "e2e/motley_command.h"

namespace motley::test {

// The hash of each tensor by its name. Throws if there is no such checkpoint.
inline std::map<std::string, std::string> tensor_hashes(const std::filesystem::path& run,
                                                        int step) {
  const Json manifest =
      Json::parse(read_text(run / fmt::format("checkpoints/step-{:06}/manifest.json", step)));
  std::map<std::string, std::string> hashes;
  for (const Json& file : manifest.at("files")) {
    for (const Json& tensor : file.at("tensors")) {
      hashes[tensor.at("name").get<std::string>()] = tensor.at("hash").get<std::string>();
    }
  }
  return hashes;
}

}  // namespace motley::test

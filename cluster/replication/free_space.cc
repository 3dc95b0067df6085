#include "cluster/replication/free_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/quantity_text.h"

namespace motley {
namespace {

std::uint64_t incoming_bytes(const TransferOrder& order) {
  std::uint64_t bytes = 0;
  for (const TransferItem& move : order.incoming) {
    const auto file = std::ranges::find(order.manifest.files, move.file, &WrittenFile::name);
    if (file == order.manifest.files.end()) continue;
    const std::size_t all = std::max<std::size_t>(1, file->tensor_hashes.size());
    bytes += move.tensors.empty() ? file->bytes : file->bytes / all * move.tensors.size();
  }
  return bytes;
}

// "lap"; for a folder that no machine of the cluster sees, its path.
std::string folder_text(const MachineStore& store) {
  return store.machines.empty() ? store.contents.location.dir.string() : store.machines.front();
}

}  // namespace

Result<void> require_free_space(const std::vector<StoreTransfers>& transfers,
                                const StoreInventory& stores) {
  for (const StoreTransfers& each : transfers) {
    const MachineStore& store = stores.by_id.at(each.store);
    const std::uint64_t needed = incoming_bytes(each.order);
    const std::uint64_t free = store.contents.free_bytes;
    if (needed <= free) continue;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the disk of {} has too little space for its part of the checkpoint",
                             each.machine),
                 fmt::format("{} bytes are to be copied from other machines, {} bytes are free, {} "
                             "bytes are missing",
                             needed, free, needed - free),
                 fmt::format("free space on the disk of {} on {}",
                             store.contents.location.dir.string(), each.machine)};
  }
  return {};
}

std::map<StoreId, std::uint64_t> save_bytes(
    const std::map<StoreId, std::set<std::string>>& parameters,
    const ModelSpec& model,
    int moments_per_parameter) {
  std::map<std::string, std::int64_t> sizes;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      sizes[parameter.name] = parameter.count();
    }
  }
  const std::uint64_t bytes_each =
      sizeof(float) * (1 + static_cast<std::size_t>(moments_per_parameter));
  std::map<StoreId, std::uint64_t> bytes;
  for (const auto& [store, names] : parameters) {
    for (const std::string& name : names) {
      bytes[store] += bytes_each * static_cast<std::uint64_t>(sizes.at(name));
    }
  }
  return bytes;
}

std::vector<std::string> saves_without_space(const std::map<StoreId, std::uint64_t>& needed_bytes,
                                             const StoreInventory& stores) {
  std::vector<std::string> lines;
  for (const auto& [id, needed] : needed_bytes) {
    const auto found = stores.by_id.find(id);
    if (found == stores.by_id.end() || needed <= found->second.contents.free_bytes) continue;
    const StoreContents& contents = found->second.contents;
    lines.push_back(fmt::format(
        "the disk of {} has too little space for a save: about {} needed, {} free. The run "
        "continues without saving until there is space: free space on the disk of {} there",
        folder_text(found->second), bytes_text(static_cast<double>(needed)),
        bytes_text(static_cast<double>(contents.free_bytes)), contents.location.dir.string()));
  }
  return lines;
}

}  // namespace motley

// Transfer of checkpoint files between ranks whose machines share no disk: a whole file, or the
// header and some tensors of a safetensors file. Files are sent in parts over the ranks' own
// connections. Each part is acknowledged once it is written, and few are in flight at a time, which
// bounds the memory of both sides. Wire format: docs/formats/frame.md, "Part of a file".
//
// One rank sends and the other receives, with the same order and pace, each on a thread with its
// own FrameLink. Any number of transfers may be active between two ranks, in both directions. The
// other end is not trusted: a received file has the manifest's sizes and hashes, or is removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/progress_counter.h"
#include "base/result.h"
#include "checkpoint/safetensors.h"
#include "comm/frames/frame_link.h"

namespace motley {

// The file to transfer. Both ends use the same.
struct FileOrder {
  // From 0 to 65,535. Unique among the files that one rank sends another in one epoch, unless the
  // earlier transfer succeeded.
  std::int32_t stream = 0;
  std::int64_t step = 0;
  WrittenFile file;  // its entry in the manifest
  // For a safetensors file, the tensors needed; nullopt: the whole file, of any kind.
  std::optional<std::set<std::string>> tensors = {};
};

// The speed of the transfer. Both ends use the same.
struct TransferRate {
  std::size_t part_bytes = std::size_t{1} << 20;  // maximum of one part; above 0
  int window = 4;                                 // parts in flight; above 0
  // During training: one part at a time, with pauses, to disturb the pipeline's frames little
  // (transfer_rate_limiter.h). `window` is not used then.
  bool yields = false;
};

// The pipeline's frames are sent between the pieces of a part (docs/formats/tcp.md). A part is
// small, so that they do not wait long where the transport does not cut it into pieces.
inline constexpr TransferRate kBackgroundRate{std::size_t{256} << 10, 1, true};

// Sends the file at `path`. If it returns without an error, the receiver has the file on its disk
// with the manifest's hashes. kCorrupt if the file here contradicts the order, or, with the
// receiver's error text, if the receiver could not store it: its disk is full, or the hashes
// differ. kPeer if the receiver is lost, is silent for `stall_timeout` or ends before the file
// does; kInterrupted at once when `stop` is requested. The receiver is informed if possible. Other
// files and frames are not affected. `work` counts acknowledged bytes; nullptr: not counted. The
// caller sets its task.
[[nodiscard]] Result<void> send_file(FrameLink& link,
                                     Rank to,
                                     const FileOrder& order,
                                     const std::filesystem::path& path,
                                     const TransferRate& rate,
                                     const StallTimeout& stall_timeout,
                                     std::stop_token stop,
                                     ProgressCounter* work);

// Receives the file as `path`, which must not exist; the file is synced, its folder is not. Tensors
// that were not ordered are zeros, which take no space on most disks; their hashes and the file's
// differ from the manifest's. After an error the file is removed. kCorrupt with the sender's error
// text if it cannot send the file; or if the received data contradicts the order or cannot be
// written here, which is reported to the sender. kPeer and kInterrupted as for send_file. `work`
// counts the bytes as they reach the disk.
[[nodiscard]] Result<void> receive_file(FrameLink& link,
                                        Rank from,
                                        const FileOrder& order,
                                        const std::filesystem::path& path,
                                        const TransferRate& rate,
                                        const StallTimeout& stall_timeout,
                                        std::stop_token stop,
                                        ProgressCounter* work);

// A folder of a checkpoint's files, some of which are still missing.
struct ShardFolder {
  std::filesystem::path folder;
  std::string launch;  // launch_text of the receiver's launch
};

// The same, as the file of that name in the folder; replaces an existing one. It is written as
// `.NAME.LAUNCH`, replacing one of an abandoned attempt. When the sender gets the last
// acknowledgement, the file has its final name, synced.
[[nodiscard]] Result<void> receive_into_shards(FrameLink& link,
                                               Rank from,
                                               const FileOrder& order,
                                               const ShardFolder& part,
                                               const TransferRate& rate,
                                               const StallTimeout& stall_timeout,
                                               std::stop_token stop,
                                               ProgressCounter* work);

}  // namespace motley

// Files of checkpoints between ranks whose machines share no disk: all of a file, or of a
// safetensors file the header and some tensors. They go over the ranks' own connections, part by
// part; each part is answered once it is written, and few are under way at a time, so that memory
// stays small on both sides. The bytes: docs/formats/frame.md, "Part of a file".
//
// One rank sends where the other receives, with the same order and pace, each on a thread and with
// a FrameLink of its own; any number of files may be under way between two ranks, in both
// directions. Nothing that the other end says is trusted: what was received has the manifest's
// sizes and hashes, or is removed.
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
#include "base/result.h"
#include "base/work_counter.h"
#include "checkpoint/safetensors.h"
#include "comm/frames/frame_link.h"

namespace motley {

// What goes over. Both ends have the same.
struct FileOrder {
  // From 0 to 65,535: no two files that one rank sends another in one epoch have the same, unless
  // the first one ended well.
  std::int32_t stream = 0;
  std::int64_t step = 0;
  WrittenFile file;  // what the manifest says of it
  // Of a safetensors file, those that are needed; nothing: the whole file, whatever it is.
  std::optional<std::set<std::string>> tensors = {};
};

// How fast it goes. Both ends have the same.
struct TransferPace {
  std::size_t part_bytes = std::size_t{1} << 20;  // at the most in one part; above 0
  int window = 4;                                 // parts under way at once; above 0
  // Beside training: one part at a time, and pauses, so that the pipeline's frames hardly feel it
  // (pace_keeper.h). `window` is not used then.
  bool yields = false;
};

// The pipeline's frames pass between the pieces of a part (docs/formats/tcp.md); it is small enough
// that they do not wait for it long where the transport cuts no pieces.
inline constexpr TransferPace kPaceBesideTraining{std::size_t{256} << 10, 1, true};

// Sends the file at `path`. When it returns without an error, the receiver has the file on its disk
// with the manifest's hashes. kCorrupt when the file here is not what the order says, or with the
// receiver's words, when that could not take it: its disk is full, or the hashes differ.
// kPeer when the receiver is lost, says nothing for as long as `patience` or ends before the file
// does; kInterrupted when `stop` was asked for, at once. The receiver hears of it where that is
// possible. Other files and frames go on whatever becomes of this one.
// `work` counts the bytes that were answered; nullptr: nobody does. Its words are the caller's.
[[nodiscard]] Result<void> send_file(FrameLink& link,
                                     Rank to,
                                     const FileOrder& order,
                                     const std::filesystem::path& path,
                                     const TransferPace& pace,
                                     const Patience& patience,
                                     std::stop_token stop,
                                     WorkCounter* work);

// Receives it as `path`, where nothing may be: a new file, synced, but for its folder. Of tensors
// that were not ordered it has zeros, which take no room on most disks: their hashes are not the
// manifest's, nor is the file's. After an error no such file is left.
// kCorrupt with the sender's words when that cannot send it; or when what came is not what the
// order says, or cannot be written here, which the sender is told. kPeer and kInterrupted as for
// send_file.
// `work` counts the bytes as they reach the disk.
[[nodiscard]] Result<void> receive_file(FrameLink& link,
                                        Rank from,
                                        const FileOrder& order,
                                        const std::filesystem::path& path,
                                        const TransferPace& pace,
                                        const Patience& patience,
                                        std::stop_token stop,
                                        WorkCounter* work);

// A folder with a checkpoint's files, some of which are still to come.
struct PartFolder {
  std::filesystem::path folder;
  std::string launch;  // launch_text of the one that receives
};

// The same, as the file of that name in the folder, in the place of what may be there. It is
// written as `.NAME.LAUNCH`, in the place of an attempt that was given up. When the sender hears
// that the file is here, it has its name, on the disk too.
[[nodiscard]] Result<void> receive_into_part(FrameLink& link,
                                             Rank from,
                                             const FileOrder& order,
                                             const PartFolder& part,
                                             const TransferPace& pace,
                                             const Patience& patience,
                                             std::stop_token stop,
                                             WorkCounter* work);

}  // namespace motley

// Model of a disk that loses power: the states of a folder that the operations of a disk_log.h may
// leave.
//
// Only synced state is certain. Syncing a file covers its bytes and its size; syncing a folder
// covers the names in it. A name is durable only after a sync of its folder, not of the file. Any
// part of the rest may be on the disk: a name without the bytes of its file, a later write without
// an earlier one, half of a block, zeros in place of data. A rename is atomic, and is synced once
// both of its folders are. A file with two names is one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/disk_log.h"

namespace motley::testing {

// REQUIRES: `text` is a complete log.
[[nodiscard]] std::vector<DiskOperation> parse_disk_log(std::string_view text);

// By path: a file's bytes; nullopt for a folder.
using DiskTree = std::map<std::string, std::optional<std::string>>;

// Decides what survives of the unsynced state.
class Cut {
 public:
  enum class Bytes { kThere, kLost, kZeros, kTorn };

  virtual ~Cut() = default;
  virtual bool keeps_name() = 0;
  virtual Bytes bytes() = 0;  // of one block
};

// The same decision for all names, and the same for all bytes.
class EvenCut final : public Cut {
 public:
  EvenCut(bool names, bool bytes) : names_(names), bytes_(bytes) {}

  bool keeps_name() override { return names_; }

  Bytes bytes() override { return bytes_ ? Bytes::kThere : Bytes::kLost; }

 private:
  bool names_;
  bool bytes_;
};

// One of all combinations: one bit for each name and block selects whether it survives.
class CountedCut final : public Cut {
 public:
  explicit CountedCut(std::uint64_t bits) : bits_(bits) {}

  bool keeps_name() override { return next(); }

  Bytes bytes() override { return next() ? Bytes::kThere : Bytes::kLost; }

  // The number of decisions that were requested.
  [[nodiscard]] int count() const { return count_; }

 private:
  bool next() { return (bits_ >> (count_++ % 64) & 1) != 0; }

  std::uint64_t bits_;
  int count_ = 0;
};

// Random decisions. The probabilities are drawn first, so that cuts which lose nearly all or
// nearly nothing are as frequent as those between.
class RandomCut final : public Cut {
 public:
  explicit RandomCut(std::uint64_t seed);

  bool keeps_name() override;
  Bytes bytes() override;

 private:
  std::mt19937_64 random_;
  double name_chance_;
  double bytes_chance_;
};

// The cuts to try at one position of a log, in addition to four fixed ones: all, nothing, only
// names, or only bytes of the unsynced state survive.
struct CutKinds {
  bool combinations = true;  // all combinations, if little is unsynced
  int random = 0;            // number of random cuts
};

// Calls `attempt` with each cut and its description. `attempt` requests each decision of a cut
// once.
void try_cuts(std::size_t place,
              const CutKinds& kinds,
              const std::function<void(Cut& cut, const std::string& words)>& attempt);

class DiskModel {
 public:
  // `durable`: the initial contents of the folder, all of it synced.
  explicit DiskModel(const DiskTree& durable);

  void apply(const DiskOperation& operation);
  // The state after a restart if the power fails now.
  [[nodiscard]] DiskTree after(Cut& cut) const;

 private:
  static constexpr std::size_t kNobody = ~std::size_t{0};

  // One change to one file or folder.
  struct Change {
    enum class Kind { kName, kBytes, kSize } kind;
    std::size_t owner;  // the file that changes, or the folder that contains the name
    std::string name;
    std::size_t child = kNobody;  // the node that the name refers to afterwards
    // Of a rename: the previous folder and name.
    std::size_t former_owner = kNobody;
    std::string former_name = {};
    std::uint64_t offset = 0;
    std::string bytes = {};
    bool owner_synced = false;
    bool former_owner_synced = false;

    [[nodiscard]] bool is_synced() const {
      return owner_synced && (former_owner == kNobody || former_owner_synced);
    }
  };

  struct Node {
    bool is_folder;
    std::map<std::string, std::size_t> names;
    std::string bytes;
  };

  using Nodes = std::vector<Node>;  // [0] is the folder itself

  static void change_name(const Change& change, Nodes& nodes);
  static void change_file(const Change& change, Cut& cut, Nodes& nodes);

  [[nodiscard]] std::size_t find(const std::string& path) const;
  [[nodiscard]] std::pair<std::size_t, std::string> place(const std::string& path) const;
  void add(const std::string& path, bool is_folder);
  void add_change(Change change);
  void sync(std::size_t node);

  Nodes durable_;  // before all changes; files and folders created later are empty here
  Nodes now_;      // after all changes
  std::vector<Change> changes_;
};

}  // namespace motley::testing

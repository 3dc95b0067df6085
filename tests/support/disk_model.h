// A disk that loses power: which states of a folder the operations of a disk_log.h may leave.
//
// What counts for certain is what was synced. A file's sync covers its bytes and its size, a
// folder's sync the names in it; a name is on the disk only by its folder's sync, not by the file's
// own. Of everything else any part may be there: a name before the bytes behind it, a later write
// without an earlier one, half of a block, zeros where bytes were to be. A rename happens whole or
// not, and counts as synced when both of its folders have been. A file with two names is one file.
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

// REQUIRES: `text` is a whole log.
[[nodiscard]] std::vector<DiskOperation> parse_disk_log(std::string_view text);

// By path: a file's bytes; nothing for a folder.
using DiskTree = std::map<std::string, std::optional<std::string>>;

// The fate of what was not synced.
class Cut {
 public:
  enum class Bytes { kThere, kLost, kZeros, kTorn };

  virtual ~Cut() = default;
  virtual bool keeps_name() = 0;
  virtual Bytes bytes() = 0;  // of one block
};

// All names and all bytes alike.
class EvenCut final : public Cut {
 public:
  EvenCut(bool names, bool bytes) : names_(names), bytes_(bytes) {}

  bool keeps_name() override { return names_; }

  Bytes bytes() override { return bytes_ ? Bytes::kThere : Bytes::kLost; }

 private:
  bool names_;
  bool bytes_;
};

// One of all combinations: bit after bit says of each name and block whether it is there.
class CountedCut final : public Cut {
 public:
  explicit CountedCut(std::uint64_t bits) : bits_(bits) {}

  bool keeps_name() override { return next(); }

  Bytes bytes() override { return next() ? Bytes::kThere : Bytes::kLost; }

  // How many were asked for.
  [[nodiscard]] int count() const { return count_; }

 private:
  bool next() { return (bits_ >> (count_++ % 64) & 1) != 0; }

  std::uint64_t bits_;
  int count_ = 0;
};

// Anything; the chances are drawn first, so that cuts which lose nearly all or nearly nothing are
// as frequent as those between.
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

// Which cuts are tried at one place of a log, besides those that keep all, nothing, only names or
// only bytes of what was not synced.
struct CutKinds {
  bool combinations = true;  // where little was not synced, all of them
  int random = 0;            // so many
};

// Calls `attempt` with each, and with words for it. It asks the cut about everything once.
void try_cuts(std::size_t place,
              const CutKinds& kinds,
              const std::function<void(Cut& cut, const std::string& words)>& attempt);

class DiskModel {
 public:
  // `durable`: what lies in the folder, all of it synced.
  explicit DiskModel(const DiskTree& durable);

  void apply(const DiskOperation& operation);
  // What a restart finds when the power goes now.
  [[nodiscard]] DiskTree after(Cut& cut) const;

 private:
  static constexpr std::size_t kNobody = ~std::size_t{0};

  // One step of one file or folder.
  struct Change {
    enum class Kind { kName, kBytes, kSize } kind;
    std::size_t owner;  // the file that changes; the folder in which a name does
    std::string name;
    std::size_t child = kNobody;  // what the name becomes
    // Of a rename: where the name was before.
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

  Nodes durable_;  // before all changes; files and folders made later are empty here
  Nodes now_;      // after all of them
  std::vector<Change> changes_;
};

}  // namespace motley::testing

#include "pipeline/schedule/action.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <span>

namespace motley {
namespace {

struct KindText {
  ActionKind kind;
  std::string_view letters;  // in the text form
  std::string_view words;    // in messages
  bool has_chunk;
  bool has_micro;
};

constexpr std::array<KindText, 17> kKinds = {{
    {ActionKind::kLoad, "L", "loading", false, true},
    {ActionKind::kSendTargets, "ST", "sending the targets", false, true},
    {ActionKind::kRecvTargets, "RT", "posting the receive of the targets", false, true},
    {ActionKind::kRecvActivation, "RA", "posting the receive of the activation", true, true},
    {ActionKind::kForward, "F", "forward", true, true},
    {ActionKind::kSendActivation, "SA", "sending the activation", true, true},
    {ActionKind::kRecvGradient, "RG", "posting the receive of the gradient", true, true},
    {ActionKind::kBackward, "B", "backward", true, true},
    {ActionKind::kBackwardInput, "BI", "backward to the input", true, true},
    {ActionKind::kBackwardWeight, "BW", "backward to the parameters", true, true},
    {ActionKind::kSendGradient, "SG", "sending the gradient", true, true},
    {ActionKind::kReduce, "R", "the all-reduce of the gradients", true, false},
    {ActionKind::kReduceTied, "T", "the all-reduce of the tied gradients", false, false},
    {ActionKind::kVote, "V", "the vote", false, false},
    {ActionKind::kStep, "S", "the update", false, false},
    {ActionKind::kOffer, "O", "offering pseudo-gradients", false, false},
    {ActionKind::kAdopt, "A", "the all-reduce of the pseudo-gradients", false, false},
}};

const KindText& text_of(ActionKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

// A non-negative number that is all of `text`.
std::optional<std::int32_t> parse_number(std::string_view text) {
  std::int32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

std::optional<Action> parse_action(std::string_view word) {
  const std::size_t letters = std::min(word.find_first_of("0123456789"), word.size());
  const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const KindText& k) {
    return k.letters == word.substr(0, letters);
  });
  if (kind == kKinds.end()) return std::nullopt;
  std::string_view numbers = word.substr(letters);
  Action action{kind->kind, {}, {}};
  if (kind->has_chunk) {
    const std::size_t dot = kind->has_micro ? numbers.find('.') : numbers.size();
    if (dot == std::string_view::npos) return std::nullopt;
    const auto chunk = parse_number(numbers.substr(0, dot));
    if (!chunk) return std::nullopt;
    action.chunk = {*chunk};
    numbers.remove_prefix(std::min(dot + 1, numbers.size()));
  }
  if (kind->has_micro) {
    const auto micro = parse_number(numbers);
    if (!micro) return std::nullopt;
    action.micro = {*micro};
  } else if (!numbers.empty()) {
    return std::nullopt;
  }
  return action;
}

// The pieces of `text` between separators; a leading, trailing or double separator gives an empty
// piece, which no grammar below accepts.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

// Parses the lines of the text form; tracks the position for error messages.
class Parser {
 public:
  Parser(std::string_view text, const std::string& source) : text_(text), source_(source) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    lines_ = split(text, '\n');
  }

  Result<Schedule> parse() {
    Schedule schedule;
    MOTLEY_TRY(parse_header(schedule));
    for (line_ = 1; line_ < lines_.size(); ++line_) MOTLEY_TRY(parse_rank(schedule));
    return schedule;
  }

 private:
  Result<void> parse_header(Schedule& schedule) {
    const auto words = split(lines_[0], ' ');
    if (words.size() != 4 && words.size() != 5) {
      return bad(lines_[0], "'schedule NAME micro_batches=M owners=R,… [islands=R,…]'");
    }
    if (words[0] != "schedule") return bad(words[0], "'schedule'");
    if (words[1].empty()) return bad(words[1], "the schedule's name");
    schedule.name = words[1];
    constexpr std::string_view kMicroBatches = "micro_batches=";
    constexpr std::string_view kOwners = "owners=";
    const auto count = words[2].starts_with(kMicroBatches)
                           ? parse_number(words[2].substr(kMicroBatches.size()))
                           : std::nullopt;
    if (!count || *count == 0) return bad(words[2], "'micro_batches=' and a number from 1");
    schedule.micro_batches = *count;
    if (!words[3].starts_with(kOwners)) return bad(words[3], "'owners=' and ranks");
    const auto chunks = split(words[3].substr(kOwners.size()), ',');
    // Each micro-batch takes at least one action per chunk, so a header that promises more than the
    // text can hold is wrong; checked before memory is sized by it.
    if (static_cast<std::size_t>(*count) > text_.size() / chunks.size()) {
      return bad(words[2], "fewer micro-batches for so few actions");
    }
    for (const std::string_view chunk : chunks) MOTLEY_TRY(parse_owners(chunk, schedule));
    return words.size() == 5 ? parse_islands(words[4], schedule) : Result<void>();
  }

  Result<void> parse_islands(std::string_view word, Schedule& schedule) const {
    constexpr std::string_view kIslands = "islands=";
    if (!word.starts_with(kIslands)) return bad(word, "'islands=' and ranks");
    for (const std::string_view numbers : split(word.substr(kIslands.size()), ',')) {
      std::vector<Rank>& island = schedule.islands.emplace_back();
      for (const std::string_view number : split(numbers, ':')) {
        const auto rank = parse_number(number);
        if (!rank) return bad(word, "the ranks of each island with ':' between");
        island.push_back({*rank});
      }
    }
    return {};
  }

  // One rank for all micro-batches, or one for each.
  Result<void> parse_owners(std::string_view chunk, Schedule& schedule) const {
    const auto micro_batches = static_cast<std::size_t>(schedule.micro_batches);
    std::vector<Rank> owners;
    for (const std::string_view number : split(chunk, ':')) {
      const auto rank = parse_number(number);
      if (!rank) return bad(chunk, "a rank, or one for each micro-batch with ':' between");
      owners.push_back({*rank});
    }
    if (owners.size() == 1) owners.resize(micro_batches, owners.front());
    if (owners.size() != micro_batches) return bad(chunk, "as many ranks as micro-batches");
    schedule.owners.push_back(std::move(owners));
    return {};
  }

  Result<void> parse_rank(Schedule& schedule) {
    const std::string prefix = fmt::format("rank {}:", schedule.ranks.size());
    if (!lines_[line_].starts_with(prefix)) return bad(lines_[line_], "'" + prefix + "'");
    std::vector<Action> actions;
    std::string_view rest = lines_[line_].substr(prefix.size());
    if (!rest.empty()) {
      if (rest.front() != ' ') return bad(lines_[line_], "a space after '" + prefix + "'");
      for (const std::string_view word : split(rest.substr(1), ' ')) {
        const auto action = parse_action(word);
        if (!action) return bad(word, "an action such as F0.3, L0 or V");
        actions.push_back(*action);
      }
    }
    schedule.ranks.push_back(std::move(actions));
    return {};
  }

  Error bad(std::string_view word, const std::string& expected) const {
    constexpr std::size_t kShown = 40;
    return {
        ErrorCode::kConfig,
        fmt::format("bad schedule word '{}', {}:{}", word.substr(0, kShown), source_, line_ + 1),
        "expected " + expected, "see docs/formats/schedule.md"};
  }

  std::string_view text_;
  const std::string& source_;
  std::vector<std::string_view> lines_;
  std::size_t line_ = 0;
};

}  // namespace

std::vector<Rank> distinct_ranks(const std::vector<Rank>& owners) {
  std::vector<Rank> ranks = owners;
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::vector<Rank> Schedule::group_members(ChunkId chunk) const {
  return distinct_ranks(owners[chunk.index()]);
}

namespace {

// The ranks by island, without islands that have fewer than two of them.
std::vector<std::vector<Rank>> groups_of(const std::vector<Rank>& ranks,
                                         const std::vector<std::vector<Rank>>& islands) {
  std::vector<std::vector<Rank>> groups;
  if (islands.empty()) groups.push_back(ranks);
  for (const std::vector<Rank>& island : islands) {
    std::ranges::copy_if(ranks, std::back_inserter(groups.emplace_back()), [&](Rank rank) {
      return std::ranges::find(island, rank) != island.end();
    });
  }
  std::erase_if(groups, [](const std::vector<Rank>& group) { return group.size() < 2; });
  return groups;
}

}  // namespace

std::vector<std::vector<Rank>> Schedule::reduce_groups(ChunkId chunk) const {
  return groups_of(group_members(chunk), islands);
}

std::vector<std::vector<Rank>> Schedule::tied_groups() const {
  return groups_of(end_ranks(), islands);
}

std::vector<Rank> Schedule::end_ranks() const {
  std::vector<Rank> ends = owners.front();
  ends.insert(ends.end(), owners.back().begin(), owners.back().end());
  return distinct_ranks(ends);
}

bool has_chunk(ActionKind kind) {
  return text_of(kind).has_chunk;
}

bool has_micro(ActionKind kind) {
  return text_of(kind).has_micro;
}

std::string to_text(const Action& action) {
  const KindText& kind = text_of(action.kind);
  if (kind.has_chunk && kind.has_micro) {
    return fmt::format("{}{}.{}", kind.letters, action.chunk.value, action.micro.value);
  }
  if (kind.has_micro) return fmt::format("{}{}", kind.letters, action.micro.value);
  if (kind.has_chunk) return fmt::format("{}{}", kind.letters, action.chunk.value);
  return std::string(kind.letters);
}

std::string to_words(const Action& action) {
  const KindText& kind = text_of(action.kind);
  if (!kind.has_micro) return std::string(kind.words);
  return fmt::format("{} of micro-batch {}", kind.words, action.micro.value);
}

std::string to_text(const Schedule& schedule) {
  std::string text =
      fmt::format("schedule {} micro_batches={} owners=", schedule.name, schedule.micro_batches);
  for (std::size_t c = 0; c < schedule.owners.size(); ++c) {
    std::span<const Rank> owners = schedule.owners[c];
    if (std::ranges::count(owners, owners.front()) == std::ssize(owners)) owners = owners.first(1);
    for (std::size_t m = 0; m < owners.size(); ++m) {
      text += fmt::format("{}{}", m > 0 ? ":" : c > 0 ? "," : "", owners[m].value);
    }
  }
  for (std::size_t i = 0; i < schedule.islands.size(); ++i) {
    text += i == 0 ? " islands=" : ",";
    for (std::size_t r = 0; r < schedule.islands[i].size(); ++r) {
      text += fmt::format("{}{}", r > 0 ? ":" : "", schedule.islands[i][r].value);
    }
  }
  text += '\n';
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    text += fmt::format("rank {}:", r);
    for (const Action& action : schedule.ranks[r]) text.append(1, ' ').append(to_text(action));
    text += '\n';
  }
  return text;
}

Result<Schedule> parse_schedule(std::string_view text, const std::string& source) {
  return Parser(text, source).parse();
}

}  // namespace motley

#include "tests/partitioner/reference_simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "tests/partitioner/reference_links.h"

namespace motley {
namespace {

enum class TaskKind { kWork, kSend, kReceive };

struct Task {
  TaskKind kind = TaskKind::kWork;
  double seconds = 0;
  std::string message;
  int to = 0;
  double bytes = 0;
  bool is_bulk = false;  // of an all-reduce, with lower priority
};

// The executor's tasks for each action, in order. Without tied parameters.
class Tasks {
 public:
  Tasks(const Schedule& schedule,
        const Plan& plan,
        const ModelSpec& model,
        const CostModel& cost,
        const std::vector<int>& slots,
        int rank)
      : schedule_(schedule), plan_(plan), model_(model), cost_(cost), slots_(slots), rank_(rank) {}

  std::vector<Task> all() {
    const auto& actions = schedule_.ranks[static_cast<std::size_t>(rank_)];
    for (std::size_t a = 0; a < actions.size(); ++a) {
      add(actions[a]);
      const int c = actions[a].chunk.value;
      if (actions[a].kind != ActionKind::kBackward &&
          actions[a].kind != ActionKind::kBackwardWeight) {
        continue;
      }
      const bool more =
          std::any_of(actions.begin() + static_cast<std::ptrdiff_t>(a) + 1, actions.end(),
                      [&](const Action& later) {
                        return later.chunk.value == c && later.kind == actions[a].kind;
                      });
      if (!more) sum_beside_layers(c);
      // The gradient of the input precedes the last of them.
      if (actions[a + 1].kind == ActionKind::kSendGradient) add(actions[a + 1]);
      if (!more) reduce(c, /*early=*/true, pieces(c) - 1);
      if (actions[a + 1].kind == ActionKind::kSendGradient) ++a;
    }
    return tasks_;
  }

 private:
  // The bytes of frames by docs/formats/frame.md, independent of the code.
  static constexpr double kHeader = 64;

  static double payload_bytes(double floats, const std::string& codec) {
    return floats * (codec == "none" ? 4 : 2);
  }

  double target_bytes() const {
    return 4.0 * static_cast<double>(model_.tokens_per_sample * plan_.micro_batch);
  }

  void add(const Action& action) {
    const int c = action.chunk.value;
    const int m = action.micro.value;
    const int last = static_cast<int>(plan_.chunks.size()) - 1;
    if (action.kind == ActionKind::kSendTargets) {
      send(fmt::format("targets {}", m), owner(last, m), target_bytes(), 0);
    } else if (action.kind == ActionKind::kForward) {
      if (c > 0 && owner(c - 1, m) != rank_) {
        receive(fmt::format("activation {}.{}", c, m),
                decode_s(c - 1) + cost_.decode_s(slot(), exact_floats_after(c - 1), "none"));
      }
      if (c == last && owner(0, m) != rank_) receive(fmt::format("targets {}", m), 0);
      work(cost_.forward_s(slot(), first(c), end(c), plan_.micro_batch));
    } else if (action.kind == ActionKind::kSendActivation) {
      send(fmt::format("activation {}.{}", c + 1, m), owner(c + 1, m),
           boundary_bytes(c) + 4 * exact_floats_after(c),
           encode_s(c) + cost_.encode_s(slot(), exact_floats_after(c), "none"));
    } else if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput) {
      if (c < last && owner(c + 1, m) != rank_) {
        receive(fmt::format("gradient {}.{}", c, m), decode_s(c));
      }
      if (at(c).recompute) work(cost_.forward_s(slot(), first(c), end(c), plan_.micro_batch));
      const bool whole = action.kind == ActionKind::kBackward;
      for (int l = first(c); l < end(c); ++l) {
        const LayerSample layer = cost_.layer(slot(), l, plan_.micro_batch);
        work(whole ? layer.backward_s : layer.split->input_s);
      }
    } else if (action.kind == ActionKind::kBackwardWeight) {
      for (int l = first(c); l < end(c); ++l) {
        const LayerSample layer = cost_.layer(slot(), l, plan_.micro_batch);
        work(layer.split->weight_s);
      }
    } else if (action.kind == ActionKind::kSendGradient) {
      send(fmt::format("gradient {}.{}", c - 1, m), owner(c - 1, m), boundary_bytes(c - 1),
           encode_s(c - 1));
    } else if (action.kind == ActionKind::kReduce) {
      reduce(c, /*early=*/false);
    } else if (action.kind == ActionKind::kVote) {
      vote();
    } else if (action.kind == ActionKind::kStep) {
      for (int chunk = 0; chunk <= last; ++chunk) {
        if (holds(chunk, rank_)) work(cost_.optimizer_s(slot(), first(chunk), end(chunk)));
      }
    }
  }

  // The number of pieces of a chunk's early all-reduce messages. Every layer has parameters.
  int pieces(int c) const { return std::min(4, at(c).layer_count); }

  // A transfer between two ranks in a phase of an all-reduce over replicas. Phase (reduce in the
  // machine, reduce over machines, gather over machines, gather in the machine), sender, distance
  // from the sender's to the receiver's machine (or local rank), first value, receiver.
  using Parcel = std::tuple<int, int, int, int, int>;

  // The floats of each parcel, computed grain by grain (128 floats; the last one may be shorter).
  std::map<Parcel, int> parcels(int c) const {
    std::vector<std::string> names;
    std::vector<std::vector<int>> machines;  // ranks
    for (const Replica& replica : at(c).replicas) {
      const std::string& name = plan_.ranks[replica.rank.index()].machine;
      const auto known = std::find(names.begin(), names.end(), name) - names.begin();
      if (known == std::ssize(names)) {
        names.push_back(name);
        machines.emplace_back();
      }
      machines[static_cast<std::size_t>(known)].push_back(replica.rank.value);
    }
    const int floats = floats_of(c);
    const int grains = (floats + 127) / 128;
    const int count = static_cast<int>(machines.size());
    const int parts = count < 3 ? 1 : count;
    std::map<Parcel, int> parcels;
    for (int owner = 0; owner < parts; ++owner) {
      const auto edge = [&](int part) { return (2 * grains * part + parts) / (2 * parts); };
      std::vector<int> before;  // the local ranks of the previous grain
      std::vector<int> runs(machines.size(), 0);
      int run = 0;
      for (int g = edge(owner); g < edge(owner + 1); ++g) {
        std::vector<int> places;
        for (const auto& ranks : machines) {
          places.push_back(local_rank_of(g - edge(owner), edge(owner + 1) - edge(owner),
                                         static_cast<int>(ranks.size())));
        }
        if (places != before) run = g;
        for (std::size_t h = 0; h < machines.size(); ++h) {
          if (before.empty() || places[h] != before[h]) runs[h] = g;
        }
        before = places;
        const int size = std::min(128, floats - 128 * g);
        const auto holder = [&](int h) {
          return machines[static_cast<std::size_t>(h)]
                         [static_cast<std::size_t>(places[static_cast<std::size_t>(h)])];
        };
        for (int h = 0; h < count; ++h) {
          const auto& ranks = machines[static_cast<std::size_t>(h)];
          const int own = places[static_cast<std::size_t>(h)];
          const int members = static_cast<int>(ranks.size());
          for (int other = 0; other < members; ++other) {
            if (other == own) continue;
            const int rank = ranks[static_cast<std::size_t>(other)];
            const int first = runs[static_cast<std::size_t>(h)];
            parcels[{0, rank, (own + members - other) % members, first, holder(h)}] += size;
            parcels[{3, holder(h), (other + members - own) % members, first, rank}] += size;
          }
          if (h == owner) continue;
          parcels[{1, holder(h), (owner + count - h) % count, run, holder(owner)}] += size;
          parcels[{count == 2 ? 1 : 2, holder(owner), (h + count - owner) % count, run,
                   holder(h)}] += size;
        }
      }
    }
    return parcels;
  }

  // The local rank of the n-th of `count` consecutive grains that `places` ranks share; the first
  // ranks have one more.
  static int local_rank_of(int n, int count, int places) {
    const int each = count / places;
    const int longer = count % places;
    if (n < longer * (each + 1)) return n / (each + 1);
    return longer + (n - longer * (each + 1)) / each;
  }

  // The time of the last backward's layers in equal parts, with a piece of the early messages
  // after each.
  void sum_beside_layers(int c) {
    double seconds = 0;
    for (int l = first(c); l < end(c); ++l) {
      seconds += tasks_.back().seconds;
      tasks_.pop_back();
    }
    for (int piece = 0; piece < pieces(c); ++piece) {
      work(seconds / pieces(c));
      if (piece + 1 < pieces(c)) reduce(c, /*early=*/true, piece);
    }
  }

  // The phase in which the rank first receives something.
  static int first_received(const std::map<Parcel, int>& all, int rank) {
    int first = 4;
    for (const auto& entry : all) {
      if (std::get<4>(entry.first) == rank) first = std::min(first, std::get<0>(entry.first));
    }
    return first;
  }

  // Messages that a rank sends before it receives any are sent early and in pieces, the rest at
  // the end.
  void reduce(int c, bool early, int piece = 0) {
    if (at(c).replicas.size() < 2) return;
    const std::map<Parcel, int> all = parcels(c);
    std::set<int> handed;  // by their first grain
    for (int phase = 0; phase < 4; ++phase) {
      for (const bool sending : {true, false}) {
        for (const auto& [parcel, size] : all) {
          const auto& [its_phase, from, distance, first, to] = parcel;
          if (its_phase != phase || (sending ? from : to) != rank_) continue;
          const bool uses_legacy_rates = phase <= first_received(all, from);
          if ((sending && uses_legacy_rates) != early) continue;
          const bool inside = phase == 0 || phase == 3;
          const std::string codec = inside ? "none" : cost_.gradient_codec();
          const std::string name =
              fmt::format("sum {}, {} from {} to {} at {}", c, phase, from, to, first);
          const double floats = size;
          if (sending) {
            const bool again =
                phase == 3 && cost_.shares_memory(slot()) && !handed.insert(first).second;
            const double hand_s = again ? 0 : cost_.hand_s(slot(), floats);
            send(fmt::format("{}, {}", name, piece), to, payload_bytes(floats, codec),
                 inside ? hand_s : cost_.encode_s(slot(), floats, codec));
            tasks_.back().is_bulk = true;
            if (uses_legacy_rates) {
              tasks_.back().seconds /= pieces(c);
              tasks_.back().bytes /= pieces(c);
            }
            continue;
          }
          const int parts = uses_legacy_rates ? pieces(c) : 1;
          for (int p = 0; p < parts; ++p) {
            receive(fmt::format("{}, {}", name, p),
                    inside ? cost_.take_s(slot(), floats) : cost_.decode_s(slot(), floats, codec));
            tasks_.back().seconds /= parts;
          }
        }
      }
    }
  }

  int floats_of(int c) const {
    std::int64_t floats = 0;
    for (int l = first(c); l < end(c); ++l) {
      for (const auto& p : model_.layers[static_cast<std::size_t>(l)].parameters) {
        floats += p.count();
      }
    }
    return static_cast<int>(floats);
  }

  void vote() {
    const int ranks = static_cast<int>(schedule_.ranks.size());
    double all_bytes = 0;
    for (int r = 0; r < ranks; ++r) all_bytes += 4 + vote_bytes(r);
    if (rank_ > 0) {
      send(fmt::format("vote {}", rank_), 0, vote_bytes(rank_), 0);
      receive(fmt::format("verdict {}", rank_), 0);
      return;
    }
    for (int r = 1; r < ranks; ++r) receive(fmt::format("vote {}", r), 0);
    for (int r = 1; r < ranks; ++r) send(fmt::format("verdict {}", r), r, all_bytes, 0);
  }

  double vote_bytes(int rank) const {
    double bytes = 40 + (rank == 0 ? 3 * 8 : 0);
    for (const ChunkPlan& chunk : plan_.chunks) {
      if (chunk.replicas.front().rank.value == rank) bytes += 12 * chunk.layer_count;
      if (chunk.replicas.size() > 1 && chunk.is_on(Rank{rank})) bytes += 8;
    }
    return bytes;
  }

  void work(double seconds) { tasks_.push_back({TaskKind::kWork, seconds, "", 0, 0}); }

  void send(const std::string& message, int to, double bytes, double codec_s) {
    tasks_.push_back(
        {TaskKind::kSend, codec_s + cost_.message_s(slot()), message, to, bytes + kHeader});
  }

  void receive(const std::string& message, double codec_s) {
    tasks_.push_back({TaskKind::kReceive, codec_s + cost_.message_s(slot()), message, 0, 0});
  }

  const ChunkPlan& at(int c) const { return plan_.chunks[static_cast<std::size_t>(c)]; }

  int first(int c) const { return at(c).first_layer; }

  int end(int c) const { return first(c) + at(c).layer_count; }

  int slot() const { return slots_[static_cast<std::size_t>(rank_)]; }

  int owner(int c, int m) const { return schedule_.owner(ChunkId{c}, MicroId{m}).value; }

  bool holds(int c, int rank) const {
    return std::any_of(at(c).replicas.begin(), at(c).replicas.end(),
                       [&](const Replica& replica) { return replica.rank.value == rank; });
  }

  double floats_after(int c) const {
    const LayerSpec& layer = model_.layers[static_cast<std::size_t>(end(c) - 1)];
    return static_cast<double>(layer.boundary(plan_.micro_batch).floats);
  }

  // The exact bytes after chunk c, in floats of 4 bytes.
  double exact_floats_after(int c) const {
    const LayerSpec& layer = model_.layers[static_cast<std::size_t>(end(c) - 1)];
    return static_cast<double>(layer.boundary(plan_.micro_batch).exact_bytes) / 4;
  }

  double boundary_bytes(int c) const { return payload_bytes(floats_after(c), at(c).codec); }

  double encode_s(int c) const { return cost_.encode_s(slot(), floats_after(c), at(c).codec); }

  double decode_s(int c) const { return cost_.decode_s(slot(), floats_after(c), at(c).codec); }

  const Schedule& schedule_;
  const Plan& plan_;
  const ModelSpec& model_;
  const CostModel& cost_;
  const std::vector<int>& slots_;
  const int rank_;
  std::vector<Task> tasks_;
};

void post(const Task& task, int from, double now_s, Letters& letters) {
  Letter& letter = letters[task.message];
  letter.from = from;
  letter.to = task.to;
  letter.bytes = task.bytes;
  letter.sent_s = now_s;
  letter.is_bulk = task.is_bulk;
}

// Sends each rank's messages at the times that follow from the arrivals. beside: [rank] messages
// are encoded and decoded by two additional workers of the rank.
ReferenceStep run_ranks(const std::vector<std::vector<Task>>& tasks,
                        const std::vector<bool>& beside,
                        Letters& letters) {
  ReferenceStep step;
  for (std::size_t r = 0; r < tasks.size(); ++r) {
    double now_s = 0;
    double encoded_s = 0;
    double decoded_s = 0;
    double compute_s = 0;
    double codec_s = 0;
    double wait_s = 0;
    for (const Task& task : tasks[r]) {
      if (beside[r] && task.kind == TaskKind::kReceive) {
        decoded_s = std::max(decoded_s, letters[task.message].arrival_s) + task.seconds;
        wait_s += std::max(0.0, decoded_s - now_s);
        now_s = std::max(now_s, decoded_s);
        continue;
      }
      if (beside[r] && task.kind == TaskKind::kSend) {
        encoded_s = std::max(encoded_s, now_s) + task.seconds;
        post(task, static_cast<int>(r), encoded_s, letters);
        continue;
      }
      if (task.kind == TaskKind::kReceive) {
        const double start_s = std::max(now_s, letters[task.message].arrival_s);
        wait_s += start_s - now_s;
        now_s = start_s;
      }
      now_s += task.seconds;
      (task.kind == TaskKind::kWork ? compute_s : codec_s) += task.seconds;
      if (task.kind == TaskKind::kSend) post(task, static_cast<int>(r), now_s, letters);
    }
    step.step_s = std::max(step.step_s, now_s);
    step.compute_s.push_back(compute_s);
    step.codec_s.push_back(codec_s);
    step.wait_s.push_back(wait_s);
  }
  return step;
}

}  // namespace

ReferenceStep reference_step(const Schedule& schedule,
                             const Plan& plan,
                             const ModelSpec& model,
                             const CostModel& cost,
                             const std::vector<int>& slots) {
  std::vector<std::vector<Task>> tasks;
  for (int r = 0; r < static_cast<int>(schedule.ranks.size()); ++r) {
    tasks.push_back(Tasks(schedule, plan, model, cost, slots, r).all());
  }
  std::vector<bool> beside;
  for (const int slot : slots) {
    beside.push_back(cost.slots()[static_cast<std::size_t>(slot)].device.starts_with("virtual"));
  }
  Letters letters;
  ReferenceStep step = run_ranks(tasks, beside, letters);
  while (true) {
    std::map<std::string, double> before;
    for (const auto& [name, letter] : letters) before[name] = letter.arrival_s;
    run_links(letters, cost, slots);
    step = run_ranks(tasks, beside, letters);
    const bool settled = std::all_of(letters.begin(), letters.end(), [&](const auto& entry) {
      return entry.second.arrival_s == before[entry.first];
    });
    if (settled) return step;
  }
}

}  // namespace motley

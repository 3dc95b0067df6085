// One ucp worker, owned by one thread ("comm"), which alone calls UCX once it runs. Other threads
// pass it tasks. It sleeps in poll() on the worker's descriptor and an eventfd for the tasks. UCX
// requires progress until nothing moves, then ucp_worker_arm (which may return "busy": progress
// again), and only then poll(); any other order loses wake-ups.
#include "comm/ucx/ucx_transport.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>

#include "base/check.h"
#include "comm/transport/comm_errors.h"
#include "comm/transport/network_interface.h"
#include "comm/ucx/ucx_peers.h"
#include "comm/ucx/ucx_worker.h"

namespace motley {
namespace {

constexpr int kLongestSleep_ms = 1000;  // UCX's own timers (keep-alive) run in progress
constexpr double kCloseTimeout_s = 1.0;

class UcxTransport : public WatchableTransport {
 public:
  UcxTransport(const TransportOptions& options,
               UcxContextPtr context,
               UcxWorkerPtr worker,
               std::string address,
               int worker_fd,
               int task_fd)
      : self_(options.rank),
        rank_count_(options.rank_count),
        address_(std::move(address)),
        worker_fd_(worker_fd),
        task_fd_(task_fd),
        context_(std::move(context)),
        worker_(std::move(worker)),
        peers_(worker_.get(), self_, options.rank_count) {
    thread_ = std::thread([this] { run(); });
  }

  ~UcxTransport() override {
    post([this] { stopping_ = true; });
    thread_.join();
    worker_.reset();  // before the buffers that UCX may still reference
    close(task_fd_);
  }

  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  std::string address() const override { return address_; }

  Result<void> connect(const std::vector<std::string>& addresses, Deadline deadline) override {
    MOTLEY_CHECK(std::ssize(addresses) == rank_count_, "{} addresses for {} ranks",
                 addresses.size(), rank_count_);
    auto outcome = std::make_shared<std::promise<Result<void>>>();  // may outlive this wait
    auto created = outcome->get_future();
    post([this, addresses, outcome] { outcome->set_value(peers_.create_endpoints(addresses)); });
    if (created.wait_until(deadline.time()) != std::future_status::ready) {
      return Error{ErrorCode::kPeer, "cannot connect", "UCX did not answer in time",
                   "raise the timeout, or choose transport gloo"};
    }
    MOTLEY_TRY(created.get());
    return exchange_hellos(deadline);
  }

  Pending send(Rank to, Tag tag, Buffer buffer) override {
    MOTLEY_CHECK(tag < kTagsEnd, "tag {:#x}", tag);
    return submit(to, UcxOperation::Direction::kSend, tag, std::move(buffer));
  }

  Pending recv(Rank from, Tag tag, Buffer buffer) override {
    MOTLEY_CHECK(tag < kTagsEnd, "tag {:#x}", tag);
    return submit(from, UcxOperation::Direction::kReceive, tag, std::move(buffer));
  }

  void lose(Rank peer, const std::string& cause) override {
    post([this, peer, cause] { peers_.lose(peer, cause); });
  }

 private:
  // --- any thread ---

  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(task_fd_, &one, sizeof one);  // full = awake
  }

  Pending submit(Rank rank, UcxOperation::Direction direction, Tag tag, Buffer buffer) {
    MOTLEY_CHECK(rank != self_ && rank.value >= 0 && rank.value < rank_count_, "rank {}",
                 rank.value);
    auto operation =
        std::make_shared<UcxOperation>(UcxOperation{rank, direction, tag, std::move(buffer)});
    Pending pending(operation->completion);
    post([this, operation] { peers_.start(std::move(*operation)); });
    return pending;
  }

  // Tests both directions: an endpoint connects only when the first message is sent.
  Result<void> exchange_hellos(Deadline deadline) {
    std::vector<std::pair<Rank, Pending>> hellos;
    for (Rank rank{0}; rank.value < rank_count_; ++rank.value) {
      if (rank == self_) continue;
      Buffer hello(0);
      std::memset(hello.header().data(), 0, kFrameHeaderBytes);
      hellos.emplace_back(rank,
                          submit(rank, UcxOperation::Direction::kReceive, kHelloTag, Buffer(0)));
      hellos.emplace_back(
          rank, submit(rank, UcxOperation::Direction::kSend, kHelloTag, std::move(hello)));
    }
    for (auto& [rank, pending] : hellos) {
      auto heard = pending.wait(deadline, fmt::format("rank {} to connect", rank.value));
      if (!heard.ok()) {
        return peer_unreachable(rank,
                                fmt::format("{} ({})", heard.error().what, heard.error().cause));
      }
    }
    return {};
  }

  // --- the comm thread ---

  void run() {
    while (!stopping_) {
      const bool started = run_tasks();
      const bool moved = ucp_worker_progress(worker_.get()) != 0;
      peers_.drop_failed();
      if (!started && !moved) sleep();
    }
    leave();
  }

  bool run_tasks() {
    std::deque<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
    return !tasks.empty();
  }

  void sleep() {
    const auto status = ucp_worker_arm(worker_.get());
    if (status == UCS_ERR_BUSY) return;
    MOTLEY_CHECK(status == UCS_OK, "ucp_worker_arm: {}", ucs_status_string(status));
    std::array<pollfd, 2> events = {pollfd{worker_fd_, POLLIN, 0}, pollfd{task_fd_, POLLIN, 0}};
    poll(events.data(), events.size(), kLongestSleep_ms);
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = read(task_fd_, &count, sizeof count);  // non-blocking
  }

  // The end of the thread: completes all operations in progress.
  void leave() {
    run_tasks();
    peers_.close(Deadline::after_s(kCloseTimeout_s));
  }

  const Rank self_;
  const int rank_count_;
  const std::string address_;
  const int worker_fd_;  // the worker's own
  const int task_fd_;

  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_

  // Used by the comm thread only.
  bool stopping_ = false;
  UcxContextPtr context_;
  UcxWorkerPtr worker_;
  UcxPeers peers_;

  std::thread thread_;
};

}  // namespace

// UCX logs every lost peer to stderr, and its signal handlers print and hang on fatal signals. Here
// failures are Results, and signals belong to the program. Both settings are global in UCX.
void quiet_ucx() {
  if (std::getenv("UCX_LOG_LEVEL") == nullptr) ucs_global_opts_set_value("LOG_LEVEL", "fatal");
  for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) ucs_debug_disable_signal(signal);
}

Result<std::unique_ptr<WatchableTransport>> make_ucx_transport(const TransportOptions& options) {
  std::string interface = options.interface;
  if (interface.empty()) {
    MOTLEY_ASSIGN(interface, interface_of(options.bind_address));
  }
  MOTLEY_ASSIGN(UcxContextPtr context, open_ucx_context(interface, options.rank_count));
  MOTLEY_ASSIGN(UcxWorkerPtr worker, open_ucx_worker(context.get(), interface));
  MOTLEY_ASSIGN(std::string address, ucx_address_text(worker.get()));
  int worker_fd = -1;
  if (const auto status = ucp_worker_get_efd(worker.get(), &worker_fd); status != UCS_OK) {
    return ucx_error(fmt::format("UCX cannot sleep on interface {}", interface), status);
  }
  const int task_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (task_fd < 0) {
    return Error{ErrorCode::kInternal, "cannot make an eventfd", std::strerror(errno), ""};
  }
  return std::unique_ptr<WatchableTransport>(std::make_unique<UcxTransport>(
      options, std::move(context), std::move(worker), std::move(address), worker_fd, task_fd));
}

}  // namespace motley

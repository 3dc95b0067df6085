// A run folder to lock, and records that other launchers leave in it.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/system/files.h"
#include "base/system/process_identity.h"
#include "checkpoint/fencing_token.h"
#include "checkpoint/lock/launch_record.h"
#include "checkpoint/lock/run_lock.h"

namespace motley {

class RunLockFixture : public testing::Test {
 protected:
  static constexpr RunLock::Timing kQuick{.renew_s = 0.02, .stale_s = 0.5};

  RunLockFixture() {
    std::string name = (std::filesystem::temp_directory_path() / "motley-lock-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }

  ~RunLockFixture() override { std::filesystem::remove_all(dir_); }

  Result<RunLock> acquire() { return RunLock::acquire(dir_, log_, kQuick); }

  // The result of confirm() once the lock is lost, or after many renewals.
  static Result<void> confirm_until_lost(RunLock& lock) {
    Result<void> confirmed;
    for (int i = 0; i < 500 && confirmed.ok(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      confirmed = lock.confirm();
    }
    return confirmed;
  }

  // Replaces the record of the first launch by a link to another file, and returns that file.
  [[nodiscard]] std::filesystem::path link_record_elsewhere() const {
    const std::filesystem::path target = dir_ / "notes";
    std::ofstream(target) << "mine";
    std::filesystem::last_write_time(target, kLongAgo);
    std::filesystem::remove(launch_file(dir_, 1));
    std::filesystem::create_symlink(target, launch_file(dir_, 1));
    return target;
  }

  static void expect_untouched(const std::filesystem::path& target) {
    EXPECT_EQ(*read_file(target), "mine");
    EXPECT_EQ(std::filesystem::last_write_time(target), kLongAgo);
  }

  inline static const auto kLongAgo =
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);

  // As a launcher on another machine writes it.
  void write_record(std::int64_t number, bool is_free = false) const {
    write_record_of({"box", "another table of processes", 77, 5, "another system"}, number,
                    is_free);
  }

  void write_record_of(const ProcessIdentity& process, std::int64_t number, bool is_free) const {
    const LaunchRecord record{.number = number,
                              .launch = fmt::format("{:06}-0123456789abcdef", number),
                              .process = process,
                              .since = "2026-11-22 16:40:11 UTC",
                              .is_free = is_free};
    ASSERT_TRUE(make_folders(launches_folder(dir_)).ok());
    std::ofstream(launch_file(dir_, number)) << launch_record_text(record);
  }

  std::filesystem::path dir_;
  const Log log_{"", LogLevel::kError};
};

}  // namespace motley

// Reports on stderr the work of a program, at once and every few seconds, whatever its main thread waits for.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace erda::tools {

class Heartbeat {
 public:
  // Prints lines such as "erda-crash: round 3 of 20, after 24 s".
  explicit Heartbeat(std::string program, std::string doing, std::chrono::milliseconds every = std::chrono::seconds(5),
                     std::FILE* to = stderr)
      : program_(std::move(program)), every_(every), to_(to), doing_(std::move(doing)) {
    Print();
    thread_ = std::thread([this] { Run(); });
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat() {
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  // Takes effect from the next line on.
  void Tell(std::string doing) {
    const std::scoped_lock lock(mutex_);
    doing_ = std::move(doing);
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, every_, [this] { return ends_; })) Print();
  }
  void Print() {
    const auto passed = std::chrono::steady_clock::now() - begin_;
    fmt::print(to_, "{}: {}, after {} s\n", program_, doing_,
               std::chrono::duration_cast<std::chrono::seconds>(passed).count());
    std::fflush(to_);
  }

  const std::string program_;
  const std::chrono::milliseconds every_;
  std::FILE* const to_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;  // Guards the members below.
  std::condition_variable changed_;
  std::string doing_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace erda::tools

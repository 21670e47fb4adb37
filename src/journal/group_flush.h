// One flush for all threads that ask for one at the same time, and one failure for all of them.
//
// The kernel tells an error of a file once, to one of the calls. A disk that lost writes in a failed flush may call the
// next one ok. So a failure must reach every thread whose writes it may concern, before a flush tells that thread ok.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "erda/status.h"

namespace erda::journal {

// Any thread may call it.
class GroupFlush {
 public:
  // Calls `flush`, or waits for another thread's call that began after this one. Returns ok if it was ok, and if
  // nothing failed before. Returns the first failure otherwise.
  template <class F>
  Status Flush(const F& flush) {
    std::unique_lock lock(mutex_);
    const uint64_t mine = ++asked_;
    while (failure_.ok() && done_ < mine) {
      if (runs_) {
        changed_.wait(lock);
        continue;
      }
      runs_ = true;
      const uint64_t covered = asked_;
      lock.unlock();
      Status status = flush();
      lock.lock();
      runs_ = false;
      if (status.ok()) {
        done_ = covered;
      } else if (failure_.ok()) {
        failure_ = std::move(status);
      }
      changed_.notify_all();
    }
    return failure_;
  }

  // Notes the failure of a write. Returns the first failure.
  Status Fail(Status status) {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = std::move(status);
    return failure_;
  }
  [[nodiscard]] Status failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t asked_ = 0;  // Calls of Flush so far.
  uint64_t done_ = 0;   // This many of them are answered.
  bool runs_ = false;   // A thread is in `flush`.
  Status failure_;
};

}  // namespace erda::journal

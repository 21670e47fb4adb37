// Whether the disk of a journal still takes what it gets. The first failure ends that for good, for all shards: nothing
// after it is acknowledged.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "erda/status.h"

namespace erda::journal {

// Any thread may call it.
class Health {
 public:
  // `before_failure` is called once, before any thread learns of the failure. `after_failure` is called once then.
  // Neither calls Fail.
  Health(std::function<void()> before_failure, std::function<void(const Status&)> after_failure)
      : before_failure_(std::move(before_failure)), after_failure_(std::move(after_failure)) {}

  // Notes a failure. The first one stays, as kUnavailable: a restart may mend it, and nothing else does.
  void Fail(const Status& status) {
    const Status failure(Code::kUnavailable, std::string(status.message()), status.error_number());
    {
      const std::lock_guard lock(mutex_);
      if (!failure_.ok()) return;
      failure_ = failure;
      before_failure_();
      // Pairs with the acquire in ok(): a shard that drops a flush because of this has no image that counts any more.
      ok_.store(false, std::memory_order_release);
    }
    // Without the lock: other threads ask for the failure while they hold locks that this takes.
    after_failure_(failure);
  }
  [[nodiscard]] bool ok() const { return ok_.load(std::memory_order_acquire); }
  // Returns the first failure, or ok.
  [[nodiscard]] Status failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  // Returns the error number of the first failure. 0: nothing has failed, or the number is unknown.
  [[nodiscard]] int error_number() const {
    const std::lock_guard lock(mutex_);
    return failure_.error_number();
  }

 private:
  const std::function<void()> before_failure_;
  const std::function<void(const Status&)> after_failure_;
  std::atomic<bool> ok_{true};
  mutable std::mutex mutex_;
  Status failure_;
};

}  // namespace erda::journal

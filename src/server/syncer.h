// Writes a pool in an ordinary file to its disk, every so often while there are changes: a power cut then takes what
// came since, and little else. It bounds a loss and promises nothing: no answer waits for it.
//
// A sync that failed cannot be made good. The kernel forgets the pages that it could not write, and a later sync says
// ok without them. So the pool is marked at once as one that nothing vouches for, stays so, and the next start verifies
// it. A mark that fails is tried again each time until it is on the disk. Later syncs go on, since they bound what
// later puts lose.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "server/counters.h"
#include "server/formatted_pool.h"

namespace erda::server {

class Syncer {
 public:
  // counters: of the first shard; this writes those of syncs alone. changes: grows with what is stored in the pool.
  // tell: may be empty; it is called once, by the syncer's thread, but again if it throws.
  Syncer(FormattedPool& pool, std::chrono::milliseconds every, Counters counters, std::function<uint64_t()> changes,
         std::function<void(std::string_view line)> tell);
  Syncer(const Syncer&) = delete;
  Syncer& operator=(const Syncer&) = delete;
  ~Syncer() { Stop(); }

  // From here to Stop nobody else marks the pool. unsynced: something was stored in it before, as a recovery does, and
  // the first sync is due without further changes. kResourceExhausted: there is no thread to be had.
  Status Start(bool unsynced = false);
  void Stop();
  // REQUIRES: it is stopped.
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  void Run();
  void Step();
  void SyncChanges();
  void Tell();

  FormattedPool& pool_;
  const std::chrono::milliseconds every_;
  Counters counters_;
  const std::function<uint64_t()> changes_;
  const std::function<void(std::string_view line)> tell_;
  // Of the thread, while that runs:
  std::optional<uint64_t> synced_changes_;  // nothing: something is unsynced in any case
  bool failed_ = false;
  std::string why_;
  bool marked_ = false;
  bool told_ = false;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace erda::server

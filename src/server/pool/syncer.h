// Writes a pool in an ordinary file to its disk at intervals, if it has changed. So a power cut loses the changes since
// the last sync, and little more. The syncer bounds the loss and promises nothing: no answer waits for it.
//
// A failed sync cannot be repaired. The kernel forgets the pages that it could not write, and a later sync succeeds
// without them. So the syncer marks the pool at once as one that nothing vouches for. The mark stays, and the next
// start verifies the pool. If the mark fails, each round tries again until the mark is on the disk. Later syncs go on,
// since they bound the loss of later puts.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "server/control/counters.h"
#include "server/pool/formatted_pool.h"

namespace erda::server {

class Syncer {
 public:
  // `counters` are those of the first shard; the syncer writes only the ones about syncs. `changes` returns a number
  // that grows with each change of the pool. `tell` may be empty. The syncer's thread calls it once, and again if it
  // throws.
  Syncer(FormattedPool& pool, std::chrono::milliseconds every, Counters counters, std::function<uint64_t()> changes,
         std::function<void(std::string_view line)> tell);
  Syncer(const Syncer&) = delete;
  Syncer& operator=(const Syncer&) = delete;
  ~Syncer() { Stop(); }

  // Starts the thread. Requires: until Stop, nobody else marks the pool. If `unsynced`, the pool has changes already,
  // for example of a recovery. The first sync is then due without further changes. Returns kResourceExhausted if the
  // system gives no thread.
  Status Start(bool unsynced = false);
  void Stop();
  // Returns true if a sync has failed. REQUIRES: the syncer is stopped.
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
  // Only the thread uses these while it runs:
  std::optional<uint64_t> synced_changes_;  // nullopt: a sync is due in any case
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

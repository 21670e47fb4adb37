// The shard's side of cleaning: decides when the cleaner works, and on what; applies what it proposes; empties regions.
//
//   (C6) A region is emptied when nothing is appended to it any more, no entry names an address in it, and nobody holds
//        it: no reservation in it is in flight, and none leads a reader there. Entries are persistent before that.
//   (C7) Only regions that nobody holds are merged: all that entries name in them is settled. One that a client may
//        still write into waits, and keeps no other from being cleaned.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "format/geometry.h"
#include "server/cleaner.h"
#include "server/counters.h"
#include "server/versions.h"

namespace erda::server {

class Cleaning {
 public:
  Cleaning(Versions& versions, const format::Geometry& geometry, std::span<std::byte> control, CleanQueues& queues);
  Cleaning(const Cleaning&) = delete;
  Cleaning& operator=(const Cleaning&) = delete;

  // After the pool was taken up.
  void Begin();
  // Applies some of what is proposed, and says what comes next; how much that was.
  size_t Step();
  // There is no room for a put in this head; waited: as there was none before. True: there may be some later, it is
  // worth to try again when `rooms` has changed.
  bool Expects(uint32_t head, bool waited = false);
  // A while has passed, so long, and a put still waits.
  void LosePatience(Nanoseconds since);
  // So much time has passed, and a put still waits.
  void AwaitChunks(Nanoseconds since);
  // Grows when room was made, or when it is clear that none can be.
  [[nodiscard]] uint64_t rooms() const { return rooms_; }
  // Cleans whatever gains something, until nothing is left.
  void Ask();
  // A put has a deadline.
  void WillExpire() {
    auto& puts = queues_.expiring_puts;
    puts.store(puts.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  [[nodiscard]] bool asked() const { return asked_; }

  // Is told of each key whose value turned out to be damaged; of none if the key cannot be known any more.
  std::function<void(std::string_view key)> on_damage;
  // Is told when a region is begun to be merged, and when it was walked.
  std::function<void(bool begins)> on_merge;

 private:
  // Searching: for entries that lead into a region that is merged and still named, to where no object is.
  // Sweeping: for what has expired, before a put is refused.
  enum class State : uint8_t { kIdle, kMerging, kSearching, kSweeping };
  // Puts that wait for the same: for a free region; or, in heads that have no slots for one, for any region there.
  struct Want {
    bool waits = false;
    bool hopeless = false;  // it is clear that there is nothing to gain
    uint64_t changes = 0;   // log_.changes() by then
  };
  // What was in a region when it was merged in vain.
  struct InVain {
    uint32_t generation = 0;
    uint32_t names = 0;
  };

  size_t Apply();
  void OnMerged(const CleanProposal& merged);
  void Tried(const log::ShardLog::LinkedRegion& region);
  void GiveSegment(const CleanProposal& wanted);
  void Order(const CleanOrder& order);
  void OrderZeroes();
  [[nodiscard]] bool Due() const;
  [[nodiscard]] bool NeedsSpace() const;
  [[nodiscard]] bool Wanted() const { return space_.waits || slots_.waits; }
  // What is held is not waited for any longer.
  [[nodiscard]] bool OutOfPatience() const;
  void GiveUp(Want& want);
  bool LookAtArrived();
  bool LookAtExpired();
  size_t Choose();
  size_t Search();
  [[nodiscard]] bool Fits(const log::ShardLog::LinkedRegion& region) const;
  void EmptyRegion(const log::ShardLog::LinkedRegion& region);
  void SetPace();

  Versions& versions_;
  log::ShardLog& log_;
  const format::Geometry& geometry_;
  Counters counters_;
  CleanQueues& queues_;

  State state_ = State::kIdle;
  log::ShardLog::LinkedRegion searched_;
  index::Slot search_at_ = 0;
  bool search_settled_ = false;  // something can be moved now that could not before
  bool asked_ = false;
  uint32_t asked_generation_ = 0;  // what is newer than that was not asked for
  uint64_t steps_ = 0;
  Want space_;
  Want slots_;
  uint64_t rooms_ = 0;
  uint32_t in_vain_ = 0;           // regions merged since a put waits, or the last room
  uint32_t impatience_ = 0;        // whiles passed since then
  size_t unseen_ = 0;              // in flight since then, and not looked at whether it has arrived
  bool swept_ = false;             // since then, for what has expired
  uint64_t next_deadline_ = 0;     // of those that the last sweep found not to have passed; 0: none
  Nanoseconds waited_{0};          // since puts wait
  uint64_t look_again_at_ = 0;     // log_.changes() from which on it is worth to look for a region
  std::vector<InVain> tried_;      // by region of the shard
  std::vector<uint32_t> to_zero_;  // not told yet
  uint64_t zeroing_ = 0;           // regions that the cleaner was told to fill with zeroes
  double bytes_per_byte_ = 0;      // that are walked for each byte that is appended
  uint64_t appended_ = 0;          // log_.tails().appended() when the region was chosen
  uint64_t begin_ = 0;             // what the cleaner had walked by then
};

}  // namespace erda::server

// Versions over a small pool, with the clients' ends and a cleaner. The tests of server/versions/versions.h and of
// cleaning use it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "base/server_time.h"
#include "base/test_hash.h"
#include "client/delegated.h"
#include "nvm/pool.h"
#include "server/cleaner/cleaner.h"
#include "server/cleaning/cleaning_policy.h"
#include "server/readers.h"
#include "server/versions/versions.h"

namespace erda::server {

// How a store takes up its pool.
enum class TakeUp : uint8_t { kOpen, kRecover, kNotYet };

struct StoreOptions {
  format::FlushMethod flush = format::FlushMethod::kServerFlush;  // the method of each session without a SetFlush
  uint32_t reservations_per_session = 1024;
  uint32_t shard = 0;
  // Eight regions of four segments of 4 KiB, an index of 64 slots.
  format::GeometryWish wish{229376, 1, 16384, 4096, 64};
  TakeUp take_up = TakeUp::kOpen;
  uint64_t grown_to = 0;  // the size to which the pool was grown after it was made with `wish`; 0: it was not grown
};

// A reserved place and its value, as the writer has them.
struct Reserved {
  Outcome outcome;
  std::string key;
  std::string value;
  SessionId session = 0;
  bool flushed_by_read = false;  // its writer makes it persistent

  [[nodiscard]] Code code() const { return outcome.code; }
  [[nodiscard]] uint64_t version() const { return outcome.header.version; }
};

class Store {
 public:
  static constexpr uint32_t kPoolSeed = 0x5eed;

  explicit Store(const StoreOptions& options = {}, std::unique_ptr<nvm::Pool> pool = nullptr);

  // Opens the same bytes again, as the next server does after a clean close.
  void CloseAndReopen();
  void Close() { versions_->Close(); }
  void Open();
  // Takes up the same bytes as the next server does after one that died.
  void Recover();

  // Takes up the same bytes as the next server does after a power cut that left a mixture of pages. Adds the keys that
  // it calls damaged to `damaged`.
  Status Verify(std::vector<std::string>* damaged);

  // From now on puts have this time to live, in milliseconds. 0: they do not expire.
  void PutFor(uint64_t ttl) { ttl_ = ttl; }
  void PassTime(uint64_t millis) { clock_.now += std::chrono::milliseconds(millis); }
  [[nodiscard]] const ServerTime& time() const { return time_; }

  // From now to PublishTogether, puts belong to one batch of the shard.
  void PutTogether() { together_ = true; }
  void PublishTogether() {
    together_ = false;
    (void)versions_->PublishPuts();
  }

  // Requests.
  Outcome Inline(std::string_view key, std::string_view value, Ack ack = Ack::kPersisted);
  Reserved Reserve(std::string_view key, std::string_view value, SessionId session = 0, Ack ack = Ack::kPersisted);
  // Puts in a chunk of the session. The session asks for a chunk if it has none with room. Returns nullopt without a
  // chunk.
  std::optional<Outcome> Delegated(std::string_view key, std::string_view value, SessionId session = 0,
                                   Ack ack = Ack::kPersisted);
  // Only writes the value one-sidedly. The session never sends the request, nor any other. Returns false without a
  // chunk.
  bool LandDelegated(std::string_view key, std::string_view value, SessionId session = 0);
  // Gives back the chunks that were revoked, as clients do.
  void GiveBack();
  // nullopt: a breach of the protocol.
  std::optional<Code> Commit(const Reserved& reserved);
  // A commit in two steps. Other requests may come between them.
  Versions::Commit BeginCommit(const Reserved& reserved);
  std::optional<Code> EndCommit(const Versions::Commit& commit);
  Code Delete(std::string_view key);
  void Report(std::string_view key);
  void EndSession(SessionId session);
  // From now on the session has this flush method.
  void SetFlush(SessionId session, format::FlushMethod flush) { flushes_[session] = flush; }
  [[nodiscard]] format::FlushMethod FlushOf(SessionId session) const {
    const auto it = flushes_.find(session);
    return it == flushes_.end() ? options_.flush : it->second;
  }
  size_t Sweep(size_t limit = 1 << 20) { return versions_->Sweep(limit); }

  // The writer's one-sided write of checksum and value, or of their first bytes.
  void Land(const Reserved& reserved) { LandPart(reserved, format::kChecksumBytes + reserved.value.size()); }
  void LandPart(const Reserved& reserved, size_t bytes);
  // Land and Commit. Returns true if the commit is answered with ok.
  bool Finish(const Reserved& reserved) {
    Land(reserved);
    return Commit(reserved) == Code::kOk;
  }

  // A step of the cleaner and one of the shard's side. Returns false if both had nothing to do.
  bool CleanStep();
  // Steps as long as there is something to do.
  void Clean();
  // An inline put that waits for room as the shard lets it wait.
  Outcome Put(std::string_view key, std::string_view value);
  [[nodiscard]] Cleaner& cleaner() { return *cleaner_; }
  [[nodiscard]] CleaningPolicy& cleaning() { return *cleaning_; }
  // Returns a slot of a head of the shard as clients see it.
  [[nodiscard]] format::HeadSlot Published(uint32_t head_of_shard, uint32_t slot) const;

  // Returns the result of a client's get. `flush` is the client's flush method.
  [[nodiscard]] std::string Get(std::string_view key) const { return Get(key, options_.flush); }
  [[nodiscard]] std::string Get(std::string_view key, format::FlushMethod flush) const;
  // Returns the result of a get after the server's process died and the pool was recovered.
  [[nodiscard]] std::string GetAfterCrash(std::string_view key) const { return ReadAfterCrash(Bytes(), key); }
  [[nodiscard]] std::string Violation() const { return FindViolation(Bytes()); }

  [[nodiscard]] PoolBytes Bytes() const {
    return {pool_->bytes(), geometry_, kPoolSeed, options_.shard, time_.Micros() / 1000};
  }
  [[nodiscard]] PoolBytes BytesOfImage(std::span<const std::byte> image) const {
    return {image, geometry_, kPoolSeed, options_.shard, time_.Micros() / 1000};
  }
  // Returns the word of the key's entry, or an empty word without an entry.
  [[nodiscard]] format::EntryWord WordOf(std::string_view key) const;
  [[nodiscard]] format::SegmentState SegmentStateOf(const Reserved& reserved) const;

  // Returns the offset of the object in the pool.
  [[nodiscard]] uint64_t OffsetOf(const Reserved& reserved) const;
  // Returns the offset of the key's newest version in the pool.
  [[nodiscard]] uint64_t OffsetOfKey(std::string_view key) const {
    return versions_->log().OffsetOf(geometry_.HeadOf(HashKey(key)), WordOf(key).new_address());
  }
  [[nodiscard]] const RecoveryReport& recovery() const { return recovery_; }
  // Returns the number of keys in the index. Counts them if Recover has left that.
  uint64_t Keys();
  void CountKeys(uint64_t slots) { versions_->growth().CountKeys(slots); }
  [[nodiscard]] uint64_t LogBytesUsed() {
    versions_->part().PublishGauges();
    return counter(format::Counter::kLogBytesUsed);
  }

  [[nodiscard]] Versions& versions() { return *versions_; }
  [[nodiscard]] const format::Geometry& geometry() const { return geometry_; }
  [[nodiscard]] nvm::Pool& pool() { return *pool_; }
  // The control block that clients Read.
  [[nodiscard]] std::span<const std::byte> control() const { return std::as_bytes(std::span(control_)); }
  // Grows by two with each index entry that moves.
  [[nodiscard]] uint64_t displacements() const { return control_[0]; }
  [[nodiscard]] uint64_t counter(format::Counter counter) const;

 private:
  // The client's end of a session's chunks.
  client::Delegated& DelegatedOf(SessionId session);
  void SendChunkRequests(SessionId session);
  // Returns a chunk of the session with room for `object_bytes` bytes in this head, or null.
  client::Delegated::Chunk* ChunkFor(uint32_t head, uint64_t object_bytes, SessionId session);
  void WriteInto(const client::Delegated::Chunk& chunk, std::string_view key, std::string_view value);
  void MakeVersions();
  [[nodiscard]] uint64_t Deadline() const { return ttl_ == 0 ? 0 : time_.DeadlineIn(ttl_); }
  [[nodiscard]] uint64_t LabelSize(std::string_view key) const { return format::LabelSize(key.size(), ttl_ != 0); }

  HandClock clock_;
  ServerTime time_{clock_, 1'000'000'000'000'000};
  uint64_t ttl_ = 0;
  StoreOptions options_;
  std::map<SessionId, format::FlushMethod> flushes_;
  std::map<SessionId, client::Delegated> delegated_;
  format::Geometry geometry_{};
  std::unique_ptr<nvm::Pool> pool_;
  std::unique_ptr<nvm::Writer> nvm_;
  std::vector<uint64_t> control_;  // words, for their alignment
  std::unique_ptr<Versions> versions_;
  std::unique_ptr<CleanQueues> queues_;
  std::unique_ptr<Cleaner> cleaner_;
  std::unique_ptr<CleaningPolicy> cleaning_;
  RecoveryReport recovery_;
  bool together_ = false;
};

// For tests that run once for each flush method.
inline auto EveryFlushMethod() {
  return testing::Values(format::FlushMethod::kNone, format::FlushMethod::kServerFlush,
                         format::FlushMethod::kReadAfterWrite);
}
inline std::string FlushMethodName(const testing::TestParamInfo<format::FlushMethod>& tested) {
  switch (tested.param) {
    case format::FlushMethod::kNone:
      return "NoFlush";
    case format::FlushMethod::kServerFlush:
      return "ServerFlush";
    case format::FlushMethod::kReadAfterWrite:
      break;
  }
  return "ReadAfterWrite";
}

}  // namespace erda::server

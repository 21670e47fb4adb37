// The versions of a shard's keys: publish, settle, commit, take back, delete (design.md section 7, docs/protocol.md).
// Everything a shard does to its pool goes through here; nothing here knows of clients' channels or of threads.
// versions.cc publishes and deletes. settling.cc settles, takes back and moves. delegating.cc gives chunks of the log
// and publishes the puts in them; chunk_table.h keeps the chunks. growing.cc makes room in the index.
//
// Invariants, checked by tests/model and tests/server:
//   (I1) An entry's old address names the newest settled version before the new one, or nothing.
//   (I2) A version is settled only after it was verified whole and its bytes, header and entry are persistent; the
//        settled bit is stored after all that.
//   (I3) An object's header and key are persistent before an entry names it.
//   (I4) A version that a delete superseded never comes back, in whatever order its value, its commit or its client's
//        death arrive.
// (I9) of recovery.h rests on the order of stores here, too: a reservation's flight ends after its entry's last store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/server_time.h"
#include "erda/client.h"
#include "erda/server.h"
#include "format/messages.h"
#include "format/superblock.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/all_published.h"
#include "server/chain.h"
#include "server/chunk_table.h"
#include "server/counters.h"
#include "server/expiry_clock.h"
#include "server/in_flight.h"

namespace erda::server {

class Recovery;
class Verification;

// Of a put that is refused for want of a region, whatever head that would be in.
inline constexpr uint32_t kAnyHead = UINT32_MAX;

struct VersionsOptions {
  uint32_t reservations_per_session = 1024;
  const ServerTime* time = &ServerTime::OfThisMachine();
  uint64_t note_ahead = ExpiryClock::kNoteAhead;
  HashSeed hash_seed{};     // the pool's
  bool index_grows = true;  // else it stays as it is, and gets full: for tests
};

// What a request answers beside its code.
struct Outcome {
  Code code = Code::kOk;
  format::Reason reason = format::Reason::kNone;
  format::LogAddress address;
  uint32_t head = 0;
  format::ObjectHeader header{};
  uint32_t generation = 0;  // of the region of `address`
  uint64_t number = 0;      // what an increment came to
};

// What the key has now, and so what a condition is judged by.
struct Present {
  enum class State : uint8_t {
    kAbsent,
    kThere,
    kUndecided,  // its newest version is not whole, and may become so: then it has been there before what comes now
    kDamaged     // there is something that may be the key's, and nobody can tell
  };
  State state = State::kAbsent;
  uint64_t version = 0;  // of kThere, or of kUndecided: the one that decides
  format::LogAddress address;
  uint64_t key_hash = 0;  // of kUndecided
  SessionId writer = 0;
};

class Versions {
 public:
  using Address = format::LogAddress;

  Versions(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
           std::span<std::byte> control, VersionsOptions options);
  ~Versions();
  Versions(const Versions&) = delete;
  Versions& operator=(const Versions&) = delete;

  // Takes up a pool that was closed cleanly, or a new one.
  Status Open();
  // Takes up a pool whose server died or lost power (recovery.h): first Look, which changes nothing, then Repair. No
  // shard is repaired before all were looked at.
  Status Look();
  // REQUIRES: Look was ok.
  RecoveryReport Repair();
  // The same of a pool whose bytes nothing vouches for (verification.h). After Verify it is open.
  Status LookUnvouched();
  // REQUIRES: LookUnvouched was ok.
  Status Verify(const std::function<void(std::string_view key)>& on_damage, RecoveryReport* report);
  // Settles or takes back everything in flight. REQUIRES: no session can write any more.
  void Close();

  // The requests. REQUIRES: key and value lie within the format's limits and the value within a segment, key_hash is
  // the key's and belongs to this shard.
  // A put is there, and may be answered, when PublishPuts has returned: those in between share its fences. Whatever
  // else is asked for that could tell comes after it by itself.
  // deadline: of the value, by options.time; 0: it has none.
  Outcome PutInline(std::string_view key, uint64_t key_hash, std::span<const std::byte> value, Ack ack,
                    uint64_t deadline = 0);
  // flush: how the session makes its values persistent.
  Outcome Reserve(std::string_view key, uint64_t key_hash, uint32_t value_size, Ack ack, SessionId session,
                  format::FlushMethod flush, uint64_t deadline = 0);
  // Verifies the value of what a session reserved, and begins to make it persistent.
  struct Commit {
    uint64_t key_hash = 0;
    uint32_t head = 0;
    Address address;
    uint64_t version = 0;
    SessionId session = 0;
    bool whole = false;
    uint64_t fences = 0;  // by then
  };
  void BeginCommit(Commit* commit);
  // Waits for that, unless somebody has since: commits and puts in between share their fences. nullopt: this session
  // has no such reservation. It broke the protocol.
  std::optional<Outcome> EndCommit(const Commit& commit);
  Outcome Delete(std::string_view key, uint64_t key_hash);
  // (I13) An expired value is absent. What comes next, in the same step of the shard, comes directly after it.
  Present Judge(std::string_view key, uint64_t key_hash);
  // Adds to the key's value, of 8 bytes; absent counts as 0. REQUIRES: this is what Judge said just now, and decided.
  Outcome Increment(std::string_view key, uint64_t key_hash, const Present& present, int64_t delta, Ack ack);
  // What Judge said is so still, as far as it can be told without a look at the value. REQUIRES: it was undecided.
  [[nodiscard]] bool IsUndecided(const Present& present) const;
  // Makes what the puts since the last call have written persistent, and publishes it (docs/protocol.md, "Publish").
  AllPublished PublishPuts() {
    if (!unpublished_.empty() || sweeps_due_ > 0) PublishAndSweep();
    return {};
  }

  [[nodiscard]] bool has_unpublished() const { return !unpublished_.empty(); }

  // A chunk of the log for the session: of `wanted` bytes, or of `least` if there are no more. kNoChunk: none now.
  // windowed: its client writes there through a window, and the chunk ends when that is closed.
  Outcome Delegate(uint32_t head, uint64_t least, uint64_t wanted, SessionId session, bool windowed = false);
  // A put of a value that the session has placed, for an object at `address` of one of its chunks; they come in the
  // order in which they stand there. kNoChunk: it has no such chunk any more. nullopt: the value is not there, or it is
  // not where the next object begins. It broke the protocol.
  std::optional<Outcome> PutDelegated(std::string_view key, uint64_t key_hash, uint32_t value_size, uint32_t value_crc,
                                      Ack ack, Address address, SessionId session, uint64_t deadline = 0);
  // The session writes no more into the chunk there whose header has this version.
  void GiveBack(uint32_t head, Address address, uint64_t version, SessionId session);
  // A while has passed: chunks that were not used for some of them are taken back.
  void AgeChunks();
  // Cleaning is short of space: chunks where nothing else is appended any more are taken back.
  void TakeBackChunks();
  // The chunks of the sessions, with their windows, and the news that the shard tells of them. The calls above end
  // chunks, and publish first.
  [[nodiscard]] ChunkTable& chunks() { return chunks_; }
  [[nodiscard]] const ChunkTable& chunks() const { return chunks_; }

  // A reader found the key's newest version not whole.
  void Report(std::string_view key, uint64_t key_hash);

  // The session is fenced: nothing of it can arrive any more.
  void EndSession(SessionId session);

  // The cleaner has copied the version at `from`, whole and persistent, to `to`: if the key's entry still names it as a
  // settled one, it names the copy from now on. Persistent after the next fence. False: it does not.
  bool Move(AllPublished proof, uint64_t key_hash, format::LogAddress from, format::LogAddress to);

  // If the key's entry names the version there as its new one, settled, and that has expired: there is no entry any
  // more. False: not so.
  bool Expire(AllPublished proof, uint64_t key_hash, uint32_t head, format::LogAddress address);
  [[nodiscard]] bool HasPassed(uint64_t deadline) { return clock_.HasPassed(deadline); }
  // By which the values of this shard expire.
  [[nodiscard]] ExpiryClock& clock() { return clock_; }

  // If the entry names, as settled, an address in this region of its head, where no object of its key can be: it names
  // another such place from now on. If it names one as its new version, not settled, which recovery has not found, that
  // is decided now; true if it can be moved then. Persistent after the next fence. REQUIRES: nobody holds the region.
  bool SetAside(AllPublished proof, index::Slot slot, uint32_t head, uint32_t region_slot);
  // If the key's entry names the address as a settled version: it names a place where no object is from now on.
  void SetAside(AllPublished proof, uint64_t key_hash, uint32_t head, Address from);
  // The key of an entry, if it still names this address, settled, and what stands there is damaged; empty if the key
  // cannot be known.
  [[nodiscard]] std::optional<std::string> DamagedKey(index::Slot slot, uint32_t head,
                                                      format::LogAddress address) const;

  // Settles what arrived in the meantime, looking at up to `limit` reservations; how many it settled.
  size_t Sweep(size_t limit);

  // Some of the growth that is due, if any is: blocks of the index are split, or it gets a region of the log.
  // slots: of blocks that are split at once, about.
  void Grow(uint64_t slots = format::kBlockSlotsMax);

  // Of what is published.
  [[nodiscard]] size_t in_flight() const { return in_flight_.size(); }
  // After a crash: counts some more keys; true once all are counted.
  bool CountKeys(uint64_t slots);
  [[nodiscard]] const index::Index& index() const { return index_; }
  // REQUIRED before anybody asks the log what it is needed for: what was published since is counted there by now.
  void CountPublished() { index_.TellPublished(); }
  [[nodiscard]] log::ShardLog& log() { return log_; }
  // Writes the gauges into the control block.
  void PublishGauges();

 private:
  using Slot = index::Slot;

  // What the index has of a key.
  struct Found {
    std::optional<Slot> entry;
    std::optional<Slot> damaged;  // an entry with the key's tag, which may be the key's: nobody can tell any more
  };
  // A place in the index and in the log for a new version of a key.
  struct NewVersion {
    Slot slot = 0;
    bool replaces = false;  // the slot's entry is the key's: published by one store
    uint32_t head = 0;
    log::ShardLog::Space space;
    uint64_t deadline = 0;
    format::ObjectHeader header{};
  };
  // Written, on its way to the medium, and not published.
  struct Unpublished {
    NewVersion version;
    std::optional<Reservation> reservation;  // none: the value is there, too
    index::Index::Change change{};           // of its entry, if the value is there
  };
  // What it takes of the index. Apart, since each put looks through all of them.
  struct Claim {
    Slot slot = 0;
    std::optional<Slot> home;  // of a new entry
  };

  [[nodiscard]] format::ShardRecord Record() const;
  // Of an entry: whose log its addresses are in.
  [[nodiscard]] uint32_t HeadOf(const format::IndexEntry& entry) const {
    return geometry_.HeadOf(entry.entry_meta().tag());
  }
  // A free slot for a new entry, if need be in an index that has grown; kNone: there is one, and *slot is it. Moves
  // entries, so no unpublished put may name a slot.
  format::Reason MakeRoom(AllPublished proof, uint64_t key_hash, Slot* slot);
  // Splits the next block. Returns false if there is no region for it.
  bool SplitNext(AllPublished proof);
  void Begin(uint64_t version_limit);
  // Looks for damage only as far as the key's entry.
  [[nodiscard]] Found Find(std::string_view key, uint64_t key_hash) const;
  // A value with this header can be the version that the slot's entry names.
  [[nodiscard]] bool IsVersionOf(Slot slot, const format::ObjectView& view) const {
    return view.state != format::ObjectState::kNothing && view.header.is_value() && CanBeOf(slot, view.header.key_hash);
  }
  void StoreAside(Slot slot, uint32_t head, Address from);
  // Tag and place of the slot's entry are as the key's would be.
  [[nodiscard]] bool CanBeOf(Slot slot, uint64_t key_hash) const;
  [[nodiscard]] uint64_t RecordOffset() const { return format::ShardRecordOffset(shard_); }
  [[nodiscard]] uint64_t NextVersion();
  // Of an object's header.
  [[nodiscard]] static uint8_t FlagsOf(Ack ack, bool flushed_by_read = false);
  // If version->space is not set, it gets some.
  Outcome Prepare(std::string_view key, uint64_t key_hash, uint32_t value_size, uint8_t flags, NewVersion* version);
  // previous: an address. The generation of its region. REQUIRES: version->head and ->space are set.
  uint32_t MakeHeader(NewVersion* version, format::ObjectKind kind, std::string_view key, uint64_t key_hash,
                      uint32_t value_size, uint8_t flags, uint64_t number, uint32_t previous) const;
  void WriteHeaderAndKey(const NewVersion& version, std::string_view key, const uint32_t* checksum);
  // A put that is not published may be of this key, or has a slot that one of this key could take.
  [[nodiscard]] bool IsClaimed(uint64_t key_hash, const Found& found) const;
  // Its object is flushed. PublishAll comes to it.
  void AddUnpublished(const NewVersion& version, const std::optional<Reservation>& reservation);
  void PublishAndSweep();
  void PublishAll();
  // What was flushed when there had been so many fences is persistent.
  void FenceSince(uint64_t fences);
  // Persistent after the next fence.
  void Publish(Unpublished* put);

  void SettleCurrent(Slot slot, uint64_t key_hash);
  // The reservation of the entry's new version, which is not settled; kNone: nobody writes it any more.
  [[nodiscard]] InFlight::Id FindWriter(Slot slot, uint64_t key_hash) const;
  // Nobody does: what was before it counts.
  void TakeBackAbandoned(Slot slot, uint64_t key_hash);
  // The reservation that it is for; kNone: the session has none that waits for it.
  [[nodiscard]] InFlight::Id FindCommitted(const Commit& commit);
  // Looks at some of what is in flight, and begins to make persistent what has arrived.
  void FlushArrived(size_t limit, bool awaited_too);
  void FlushArrived(InFlight::Id id, const Reservation& reservation);
  // REQUIRES: what was flushed then is persistent. How many it settled.
  size_t SettleArrived();
  // Settles what has arrived of the session, up to so many; how many it does not have any more.
  size_t SweepOf(SessionId session, size_t limit);
  [[nodiscard]] bool CommitWhole(const Reservation& reservation);
  void TakeBack(const Reservation& reservation);
  void TakeBackEntry(Slot slot, const Reservation& gone);
  void Finish(InFlight::Id id);
  // The reservation is not in flight any more.
  void LetGo(const Reservation& gone);
  [[nodiscard]] bool IsPassed(const Reservation& older);
  void MarkSettled(uint64_t key_hash, uint32_t head, Address address);
  [[nodiscard]] bool HasVisibleVersion(Slot slot);
  [[nodiscard]] bool HasExpired(uint32_t head, Address address);
  // Settles what has arrived of the key.
  void SettleArrivedOf(uint64_t key_hash);
  // (I4) Nothing of the key that is in flight counts, whether it arrives or not.
  void Supersede(std::string_view key, uint64_t key_hash);

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const uint32_t pool_seed_;
  const uint32_t shard_;
  const VersionsOptions options_;
  Counters counters_;
  ExpiryClock clock_;
  log::ShardLog log_;
  index::Index index_;
  ChunkTable chunks_;
  Chain chain_;
  InFlight in_flight_;
  std::vector<Unpublished> unpublished_;
  std::vector<Claim> claims_;          // of each of them
  size_t sweeps_due_ = 0;              // places in flight that PublishPuts is to look at
  std::vector<InFlight::Id> arrived_;  // and flushed: SettleArrived comes to it
  // Not in flight any more, but between a newer one that is and what is older: who follows `previous` comes by.
  std::vector<Reservation> passed_;
  std::vector<uint32_t> session_reservations_;  // by session
  std::unique_ptr<Recovery> recovery_;          // between Look and Repair
  std::unique_ptr<Verification> verification_;  // between LookUnvouched and Verify
  uint64_t next_version_ = 1;
  uint64_t grown_at_ = 0;  // next_version_ at the last Grow
  uint64_t version_limit_ = 0;
};

}  // namespace erda::server

// One shard: a state machine that serves its clients' requests from its completion queues, one for each fabric. It owns
// no thread and reads no clock: ServerThreads drive it in production, a seeded loop in tests.
//
// Every length, number and address in a request is checked here, from a private copy, before anything is done. A client
// that breaks the protocol loses its channel, and nobody else notices.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/server_time.h"
#include "base/shared_memory.h"
#include "erda/server.h"
#include "fabric/fabric.h"
#include "format/messages.h"
#include "nvm/writer.h"
#include "server/activity.h"
#include "server/cleaner.h"
#include "server/cleaning_policy.h"
#include "server/events.h"
#include "server/formatted_pool.h"
#include "server/gate.h"
#include "server/session.h"
#include "server/versions.h"

namespace erda::server {

struct ShardOptions {
  uint32_t max_clients = 1024;
  uint32_t slots_per_client = format::kSlotsMax;
  uint32_t slot_bytes = 16384;
  uint32_t reservations_per_client = 1024;
  uint32_t clients_per_token = 0;    // connections with one token, or of one client id; 0: no limit of their own
  uint32_t requests_per_second = 0;  // of one client that are served; what is more waits. 0: no limit
  PoolWrites pool_writes = PoolWrites::kSameUser;
  uint64_t staging_bytes = 4 << 20;  // of each session that may not write into the pool, or a segment if that is more
  uint64_t server_id = 0;
  bool index_grows = true;  // VersionsOptions
  const ServerTime* time = &ServerTime::OfThisMachine();
  uint64_t note_ahead = ExpiryClock::kNoteAhead;  // milliseconds
  const Clock* clock = &SteadyClock::Instance();  // by which requests are timed
};

// The pool as a fabric knows it: registered once, offered by all shards.
struct PoolRegions {
  std::unique_ptr<fabric::Region> readable;  // with windows, if the fabric has them and somebody may have one
  std::unique_ptr<fabric::Region> writable;  // none if it is nobody's to write
  static Result<PoolRegions> Register(fabric::Fabric& fabric, const nvm::Pool& pool,
                                      PoolWrites writes = PoolWrites::kSameUser);
};

// A fabric that a shard is reached on, the pool's regions there, and the shard's own queue.
struct Port {
  fabric::Fabric& fabric;
  const PoolRegions& pool_regions;
  fabric::CompletionQueue& queue;
  format::FlushMethod flush_method = format::FlushMethod::kNone;  // of its sessions
  std::optional<size_t> for_readers = std::nullopt;               // the port of those who come here, and may only read
};

class Shard {
 public:
  // Before it is used, its part of the pool must be taken up. All that the ports refer to outlives the shard. Sessions
  // know their port by its place among them.
  static Result<std::unique_ptr<Shard>> Create(FormattedPool& pool, uint32_t number, std::span<const Port> ports,
                                               const ShardOptions& options);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // Changes nothing in the pool. kCorruption: it is damaged.
  Status TakeUp();
  // After all shards of a pool that needs recovery were taken up.
  RecoveryReport Repair() { return versions_->part().Repair(); }
  // Instead of Repair, if the pool needs verification. REQUIRES: no thread polls it.
  Status Verify(const std::function<void(std::string_view key)>& on_damage, RecoveryReport* report) {
    return versions_->part().Verify(on_damage, report);
  }
  // After that, before anything is served.
  void BeginCleaning() { cleaning_.Begin(); }

  // A peer that asked for this shard on that port, and was let in: becomes a session, or is refused with a message.
  void Admit(std::unique_ptr<fabric::Incoming> incoming, const format::HelloRequest& hello, size_t port,
             const Admission& admission = {});
  // Ends all sessions whose token is none of these.
  void EndOthers(const TokenIds& tokens);

  // Serves what has arrived on all ports; how much that was.
  size_t Poll();
  // For idle moments, so long after the last one: settles what arrived without a commit, and ends what is over; how
  // much that was.
  size_t Tidy(Nanoseconds since);
  // Requests wait for what clients write. So much more time has passed in which they do.
  [[nodiscard]] bool awaits_writers() const { return !undecided_.empty(); }
  void PassTime(Nanoseconds since);
  // While values may expire, the word that clients Read is no older than this. REQUIRED: a Poll this often, also of a
  // shard that sleeps.
  static constexpr Nanoseconds kTimeAge = std::chrono::milliseconds(20);
  [[nodiscard]] bool keeps_time() const { return clean_queues_.MayExpire(); }
  void KeepTime() {
    if (keeps_time()) (void)versions_->clock().Raise();
  }
  // For the time after a crash: counts keys, a few slots of the index at a time; true once all are counted.
  bool CountKeys();
  // Something is in flight, or waits: it must be looked at again after a while.
  [[nodiscard]] bool unsettled() const {
    return versions_->in_flight() > 0 || versions_->chunks().delegates() || !waiting_.empty() || !undecided_.empty() ||
           !doomed_.empty();
  }
  // The other side of cleaning: may be stepped by another thread.
  [[nodiscard]] Cleaner& cleaner() { return cleaner_; }
  [[nodiscard]] CleanQueues& clean_queues() { return clean_queues_; }
  // Is told of each key whose value is found damaged by the way; of none if the key cannot be known any more.
  void OnDamage(std::function<void(std::string_view key)> told) { cleaning_.on_damage = std::move(told); }
  // Is told of clients that break the protocol or keep others waiting, and of those that are refused.
  void OnEvent(TellEvent tell) { on_event_ = std::move(tell); }
  // From the next request and the next client on. From any thread. Each is a number by itself, so relaxed: a request
  // finds the limits that were set before its client sent it, by the order in which a message is sent and found.
  void SetLimits(uint32_t clients_per_token, uint32_t requests_per_second) {
    clients_per_token_.store(clients_per_token, std::memory_order_relaxed);
    requests_per_second_.store(requests_per_second, std::memory_order_relaxed);
  }
  // Requests are held back until more of their clients' may be served; for so long.
  [[nodiscard]] bool holds_back() const { return !holding_.empty(); }
  [[nodiscard]] Nanoseconds held_for() const;
  // True once there is none any more. False: a client is in the middle of a Write, ask again soon.
  bool EndSessions();
  // Ends all sessions, settles or takes back what is in flight, leaves the pool as a clean close wants it.
  void Close();

  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  void CountSleep() { counters_.Add(format::Counter::kSleeps); }
  // What it did so far; it may be doing more.
  void AddActivity(Activity* sum) const { format::AddActivity(activity_.bytes(), sum); }
  // Of the process. The cleaner's thread calls it.
  void CountDescriptors(uint64_t open) { counters_.Set(format::Counter::kDescriptors, open); }
  // Of all shards. Before this one serves.
  void CountRecovery(const RecoveryReport& report);
  [[nodiscard]] const Versions& versions() const { return *versions_; }
  // As clients read it.
  [[nodiscard]] uint64_t time() const {
    return LoadAs<uint64_t>(control_.bytes().subspan(offsetof(format::ControlBlock, time)));
  }

 private:
  Shard(FormattedPool& pool, uint32_t number, std::span<const Port> ports, const ShardOptions& options,
        SharedMemory control);
  Status Register();

  [[nodiscard]] Result<std::unique_ptr<Session>> MakeSession(const format::HelloRequest& hello, size_t port,
                                                             const Admission& admission, fabric::PeerUser user);
  [[nodiscard]] bool MayWritePool(fabric::PeerUser user) const;
  [[nodiscard]] bool MayHaveWindows(size_t port) const;
  Status GiveStaging(Session& session);
  Status Accept(fabric::Incoming& incoming, const format::HelloRequest& hello, size_t port, const Admission& admission);
  void OnConnected(Session& session);
  // limits.cc
  void TellOf(const Session& session, std::string_view what) const;
  [[gnu::cold]] void Violate(Session& session, const char* what);
  [[nodiscard]] Status MayConnect(const format::HelloRequest& hello, const Admission& admission) const;
  void NameFabrics();
  void CountRefused(size_t fabric);
  void CountRegistered();  // without sessions
  void CountRegistered(const Session& session, bool comes);
  [[nodiscard]] bool MayHoldBack(const Session& session) const {
    return requests_per_second_.load(std::memory_order_relaxed) != 0 || !session.held.empty();
  }
  [[nodiscard]] bool IsTooFast(Session& session);
  [[nodiscard]] bool IsHeldBack(Session& session, uint32_t imm, Nanoseconds seen);
  size_t ServeHeld();
  void Doom(Session& session);
  size_t EndDoomed();
  void EndSession(SessionId id);

  void Handle(const fabric::Completion& completion, Nanoseconds seen);
  Violation Hear(Session& session, const fabric::Completion& message, Nanoseconds seen);
  Violation HearNow(Session& session, uint32_t imm, Nanoseconds seen);
  // Puts that found no room, now that there may be some, or none is to be expected.
  size_t ServeWaiting();
  // Goes through so many of the requests that what somebody else writes decides, in turn, and serves those for which it
  // may have; how many do not wait any more. looks: also at values that are not due to be looked at.
  size_t ServeUndecided(size_t limit, bool looks);
  // Those of this Poll.
  void EndCommits();
  void Wait(const Asked& asked);
  // It was not answered yet.
  [[nodiscard]] bool IsWaiting(const Session& session, uint32_t slot) const;
  // Serves a request for the first time (kNothing), or again after it has waited for room in the log or for a writer.
  enum class After : uint8_t { kNothing, kRoom, kWriter };
  Violation Serve(const Asked& asked, After after = After::kNothing);
  Violation TellTime(const Asked& asked);
  // present: what kept it from being served.
  Violation ServeKeyed(Session& session, const format::Request& request, std::span<std::byte> slot, Outcome* outcome,
                       Present* present);
  // kind: of what is answered, its RequestOp, or 0.
  void Answer(const Asked& asked, uint8_t kind, uint64_t id, const Outcome& outcome);
  // With an immediate; a reply, or no bytes.
  void Say(Session& session, uint32_t imm, std::span<std::byte> reply);
  // To the chunk that Delegate gave; else the session has no such chunk.
  void OpenWindow(Session& session, Outcome* outcome);
  void CloseWindows();
  void TellTakenBack();
  void DoomOverdue();
  // The proof is why no client hears of a put before the shard has published it.
  void PostReplies(AllPublished proof);
  void PublishAndCommit();

  FormattedPool& pool_;
  const format::Geometry& geometry_;
  const uint32_t number_;
  const std::vector<Port> ports_;
  const ShardOptions options_;

  nvm::Writer nvm_;
  SharedMemory control_;
  Counters counters_;
  ActivityCounts activity_;
  std::vector<size_t> fabric_of_port_;  // as they are counted
  std::unique_ptr<Versions> versions_;
  CleanQueues clean_queues_;
  Cleaner cleaner_;
  CleaningPolicy cleaning_;
  std::vector<std::unique_ptr<fabric::Region>> control_regions_;  // by port
  std::vector<std::unique_ptr<Session>> sessions_;                // by session id; null where free
  std::vector<Session*> answered_;                                // sessions with replies to post
  std::vector<SessionId> doomed_;
  TellEvent on_event_;
  struct Answered {
    uint8_t kind = 0;
    uint32_t count = 0;
    Nanoseconds seen{
        0};  // by options_.clock, which is read when a Poll finds something, and when it has posted answers
  };
  std::vector<Answered> answered_kinds_;  // not posted yet; in a row if they are of a kind and were seen together
  Nanoseconds merging_since_{0};
  uint32_t persists_ = 0;
  std::vector<SessionId> holding_;  // sessions with requests that are held back
  uint64_t now_micros_ = 0;         // in this Poll; 0: not read yet
  std::atomic<uint32_t> clients_per_token_;
  std::atomic<uint32_t> requests_per_second_;
  bool ends_ = false;  // some of them were not looked at
  uint32_t polls_since_fence_ = 0;
  struct Commit {
    Versions::Commit begun;
    uint32_t slot = 0;
    uint64_t id = 0;  // of the request
    Nanoseconds seen{0};
  };
  std::vector<Commit> commits_;
  // Requests that wait for room in the log, in their order, and what cleaning_.rooms() was when they were served last.
  struct Waiting {
    SessionId session = 0;
    uint32_t slot = 0;
    Nanoseconds seen{0};
  };
  std::deque<Waiting> waiting_;
  uint64_t rooms_seen_ = 0;
  // Requests that cannot be judged before the version `present` is whole, passed, or taken back.
  struct Undecided {
    static constexpr uint64_t kFirstLook = 64;

    SessionId session = 0;
    uint32_t slot = 0;
    Nanoseconds seen{0};
    Present present;
    bool told = false;  // of time, which begins to count then
    Nanoseconds waited{0};
    bool overdue = false;  // it has waited for long enough
    bool looked = false;   // since then, in vain
    // Polls until now, and until its value is looked at next.
    uint64_t polls = 0;
    uint64_t next_look = kFirstLook;
  };
  void KeepUndecided(const Undecided& undecided);
  std::deque<Undecided> undecided_;
  uint32_t busy_polls_ = 0;
  size_t first_port_ = 0;  // that is polled first, for fairness
  std::array<fabric::Completion, 64> completions_;
};

}  // namespace erda::server

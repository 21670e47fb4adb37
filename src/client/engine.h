// The client's protocol: operations as state machines over the fabric contract. It owns no thread and reads no clock
// but the one passed in: Client drives it in production, a seeded loop in tests.
//
// One operation in flight is one Operation; a completion moves it to its next step, in engine.cc. How operations begin
// and end is in operations.cc, the steps of a get are in get.cc, those of puts and deletes in put.cc, what a scan is
// made of in block.cc, values in the caller's memory in buffer.cc, connections in connections.cc.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "client/key_order.h"
#include "client/link.h"
#include "client/location_cache.h"
#include "client/operation.h"
#include "client/read_table.h"
#include "erda/client.h"
#include "fabric/fabric.h"

namespace erda::client {

// The shard's time (docs/protocol.md, "Expiry").
inline constexpr fabric::RemoteAddress kTimeWord{format::kControlRegion, offsetof(format::ControlBlock, time)};

struct EngineOptions {
  Ack ack = Ack::kPersisted;
  PutPath put_path = PutPath::kAuto;
  uint32_t queue_depth = 64;
  uint32_t cache_entries = 65536;
  Nanoseconds timeout{std::chrono::seconds(5)};
  uint64_t client_id = 0;
  // What is known of the server's token, each time that it is asked for; empty: none.
  std::function<Result<std::string>()> token{};
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> Create(std::shared_ptr<fabric::Fabric> fabric, std::string address,
                                                const EngineOptions& options, const Clock& clock);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Begins to connect to all shards: true once all are up. An error is final until the next call.
  Result<bool> Connect();
  // Why a connection ended that Connect had begun, once; ok if none did.
  Status TakeConnectError() { return std::exchange(connect_error_, Status()); }

  // As in Client. The callback runs in a later Poll.
  Status Get(std::string_view key, Client::GetCallback&& done);
  // The same without an operation: if nothing is under way, the value is where it was before, and the fabric reads it
  // at once. It lives until the next call. kNo: Get.
  enum class Now : uint8_t { kNo, kValue, kAbsent };
  [[nodiscard]] Now GetNow(std::string_view key, VersionedView* found);
  Status Put(std::string_view key, std::string_view value, Client::DoneCallback&& done);
  Status Delete(std::string_view key, Client::DoneCallback&& done);
  Status GetVersioned(std::string_view key, Client::GetVersionedCallback&& done);
  Status Put(std::string_view key, std::string_view value, const PutOptions& options, Client::PutCallback&& done);
  Status Delete(std::string_view key, const DeleteOptions& options, Client::DoneCallback&& done);
  Status Increment(std::string_view key, int64_t delta, Client::IncrementCallback&& done);
  // The same into and from the caller's registered memory.
  Result<std::shared_ptr<Buffer::Memory>> MakeBuffer(size_t value_bytes);
  Status Get(std::string_view key, const std::shared_ptr<Buffer::Memory>& into, Client::GetCallback&& done);
  Status Put(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size,
             Client::DoneCallback&& done);
  Status Put(std::string_view key, const std::shared_ptr<Buffer::Memory>& from, size_t size, const PutOptions& options,
             Client::PutCallback&& done);
  // For scans (scan.h). The block of the index where keys with these low bits of their hashes are; what the key is, and
  // its value if that is wanted, of which an entry was found.
  // REQUIRES: connected, and there is such a shard.
  Status ReadBlock(uint32_t shard, uint32_t hash_low, BlockCallback&& done);
  Status GetEntry(const FoundEntry& found, bool with_value, EntryCallback&& done);
  // REQUIRES: connected, and there is such a shard.
  Status Clean(uint32_t shard, Client::DoneCallback&& done);
  // Throws what a callback of the caller's threw, when all else is done, and nothing of its own: without memory for a
  // step all operations end with kResourceExhausted.
  size_t Poll();
  // The last Poll brought something, if only a step of an operation.
  [[nodiscard]] bool went_on() const { return went_on_; }

  [[nodiscard]] uint32_t in_flight() const { return in_flight_; }
  // Sleeps until Poll may have something, at most so long.
  void Wait(Nanoseconds timeout);
  [[nodiscard]] const ClientStats& stats() const { return stats_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] size_t ValueBytesMax(size_t key_bytes) const;

  // The control blocks of all shards, with what they count, read anew: begins, and true once they are there. REQUIRES
  // to begin: ControlsRead().
  Status BeginReadControls();
  [[nodiscard]] bool ControlsRead() const;
  [[nodiscard]] std::span<const std::unique_ptr<Link>> links() const { return std::span(links_).first(shards()); }
  // Of the pool. REQUIRES: was connected.
  [[nodiscard]] const format::Geometry& geometry() const { return geometry_; }
  [[nodiscard]] uint32_t pool_seed() const { return format::PoolSeed(pool_uuid_); }
  [[nodiscard]] uint32_t queue_depth() const { return options_.queue_depth; }

 private:
  Engine(std::shared_ptr<fabric::Fabric> fabric, std::string address, const EngineOptions& options, const Clock& clock);
  Status Prepare();

  // --- Operations: taking, ordering, finishing
  // Null if it cannot be: Refusal says why.
  Operation* NewOperation(OpType type, std::string_view key);
  // REQUIRES: fewer than queue_depth are in flight.
  Operation& TakeOperation(OpType type);
  [[nodiscard]] Status Refusal(std::string_view key) const;
  template <class Callback>
  Status BeginGet(std::string_view key, Callback Operation::*member, Callback&& done);
  // Of what travels with the request, perhaps: a put, or an increment by the value.
  template <class Callback>
  Status BeginPut(OpType type, std::string_view key, std::string_view value, const PutOptions& options,
                  Callback Operation::*member, Callback&& done);
  // A request that says no more than its key.
  Status StartWithKey(OpType type, std::string_view key, std::optional<uint64_t> if_version,
                      Client::DoneCallback&& done);
  // The operation has the buffer from here on; its message begins so far before the value.
  static void TakeBuffer(Operation& op, const std::shared_ptr<Buffer::Memory>& buffer, uint64_t before_value);
  [[nodiscard]] Status CheckBuffer(const std::shared_ptr<Buffer::Memory>& buffer) const;
  [[nodiscard]] static Result<std::string_view> InBuffer(const Buffer::Memory& buffer, std::string_view value);
  [[nodiscard]] bool HasChunks() const;
  template <class Callback>
  Status BeginPutFrom(const std::shared_ptr<Buffer::Memory>& from, std::string_view key, size_t size,
                      const PutOptions& options, Callback Operation::*member, Callback&& done);
  Result<Operation*> NewPut(OpType type, std::string_view key, size_t value_size, const PutOptions& options);
  void Begin(Operation& op);
  void Run(Operation& op);
  void BeginSteps(Operation& op);
  void EndAll() noexcept;
  void Finish(Operation& op, Status status);
  void FinishGet(Operation& op, const VersionedView& found);
  void EndGet(Operation& op, Result<std::string_view>&& value);
  template <class Callback>
  void Retire(Operation& op, Callback&& callback);
  void GoOn(Operation& op, OpIndex next);
  void Free(Operation& op);
  [[nodiscard]] uint32_t ShardOf(const Operation& op) const {
    if (op.shard != Operation::kByKey) return op.shard;
    return geometry_known_ ? geometry_.ShardOf(op.key_hash) : 0;
  }
  void Defer(Operation& op, Status status);
  void Deliver(Operation& op);
  void DeliverDeferred();
  Status ProvideMessageMemory(Operation& op, uint64_t bytes) {
    return bytes <= op.message().size() ? Status() : ProvideLargeMemory(op, bytes);
  }
  Status ProvideLargeMemory(Operation& op, uint64_t bytes);

  // --- Links (connections.cc)
  [[nodiscard]] size_t shards() const { return geometry_known_ ? geometry_.shards : 1; }
  Status EnsureConnecting(Link& link);
  void Prove(Link& link);
  void OnLinkConnected(Link& link);
  void OnControlRead(Link& link);
  void CloseLink(Link& link, const Status& status, OpIndex timed_out = kNoOp);
  void AdoptGeometry(const Link& link);
  void OnLinkClosed(Link& link);
  void WaitForHeads(Operation& op);
  void CheckDeadlines();

  // --- Fabric
  void Progress();
  void Dispatch(const fabric::Completion& completion);
  // At once if nothing else is on its way, else together with what else there is to post. False if the connection
  // failed.
  bool Post(Link& link, std::span<const fabric::WorkRequest> batch);
  void FlushPosts() {
    if (!to_start_.empty() || !to_flush_.empty()) FlushAll();
  }
  void FlushAll();
  void StartGets();
  // What is posted now goes out together with what others post.
  [[nodiscard]] bool Gathers() const { return polling_ ? gathering_ : in_flight_ > 1; }
  void PostRead(Operation& op, Step step, std::span<std::byte> to, fabric::RemoteAddress from);
  fabric::WorkRequest ReadWork(const Operation& op, std::span<std::byte> to, fabric::RemoteAddress from, bool last);

  // --- Gets (get.cc)
  // Where a key's version was, in the use of its region that it was in.
  struct Located {
    uint32_t head;
    format::HeadSlot slot;
    format::LogAddress at;
    uint64_t bytes;
    bool expires;
  };
  [[nodiscard]] std::optional<Located> FindLocated(const Link& link, uint64_t key_hash);
  bool StartLocatedGet(Operation& op);
  [[nodiscard]] static bool IsLocated(const Link& link, const Located& located, std::string_view key,
                                      std::span<const std::byte> bytes, format::ObjectView* view);
  void OnLocatedRead(Operation& op);
  void Locate(const Operation& op, format::LogAddress address, uint32_t generation, uint64_t object_bytes,
              bool expires);
  void StartGet(Operation& op);
  void OnEntryRead(Operation& op);
  bool FollowNextEntry(Operation& op);
  void ReadNewest(Operation& op);
  void ReadVersion(Operation& op, uint64_t bytes);
  [[nodiscard]] fabric::RemoteAddress EntryAddress(const Operation& op) const;
  [[nodiscard]] static std::span<std::byte> EntryCopy(const Operation& op);
  void OnVersionRead(Operation& op);
  bool SlotHolds(Operation& op);
  void OnSecondLook(Operation& op);
  void DecideVersion(Operation& op, format::ObjectView view, EntryLook look);
  void GoOlder(Operation& op, const format::ObjectView& view);
  void GoTo(Operation& op, format::LogAddress address);
  [[nodiscard]] static bool IsComparedWithOld(const Operation& op);
  [[nodiscard]] static uint64_t OldVersion(const Operation& op);
  static constexpr uint64_t kNoBlock = UINT64_MAX;
  [[nodiscard]] static uint64_t LikelyBlock(const Operation& op);
  void WaitForBlock(Operation& op);
  // Whose log the versions of its key are in.
  [[nodiscard]] static uint32_t HeadOf(const Operation& op) { return op.link->geometry().HeadOf(op.key_hash); }
  [[nodiscard]] static bool IsOfBlock(const Operation& op, const Reading& reading);
  [[nodiscard]] bool ReadsInOrder() const;
  void LookBetweenReadings(Operation& op, Step step, std::span<std::byte> to, fabric::RemoteAddress from);
  void ReadBehind(Operation& op);
  [[nodiscard]] static Reading TakeReading(Operation& op);
  void ConfirmMiss(Operation& op, uint64_t block);
  void GoFarther(Operation& op, format::Reaches reaches);
  bool LookFarther(Operation& op, format::Reaches reaches);
  void OnMissConfirm(Operation& op);
  [[nodiscard]] format::ObjectView InspectRead(const Operation& op) const;
  // kMeanwhile: it was the newest, and perhaps is no more, and its deadline has passed. kUnknown: the time is to be
  // Read. kOverdue: by the client's own clock its deadline has passed, and the shard has not raised its time yet.
  enum class Expiry : uint8_t { kLives, kOver, kMeanwhile, kUnknown, kOverdue };
  [[nodiscard]] Expiry ExpiryOf(Link& link, uint64_t deadline, uint64_t time_before, uint64_t time_behind);
  void EndWith(Operation& op, const format::ObjectView& view) {
    if (view.deadline == 0) return FinishGet(op, ViewOf(view));
    EndWithDeadline(op, view);
  }
  void EndWithDeadline(Operation& op, const format::ObjectView& view);
  void OnTimeRead(Operation& op);
  [[nodiscard]] static VersionedView ViewOf(const format::ObjectView& view);
  bool Report(Operation& op);

  // --- Blocks, and their entries (block.cc)
  void StartBlock(Operation& op);
  void OnBlockRead(Operation& op);
  void EndBlock(Operation& op, const Result<BlockView>& block);
  void StartEntry(Operation& op);
  static bool TakeKey(Operation& op, const format::ObjectView& view);
  void LearnKey(Operation& op, const format::ObjectView& view);
  void DecideNameless(Operation& op, EntryLook look);

  // --- Puts and deletes (put.cc)
  void StartRequest(Operation& op);
  void DecideWay(Operation& op);
  void SendRequest(Operation& op);
  void GoWithoutChunk(Operation& op);
  [[nodiscard]] format::Request MakeRequest(const Operation& op, format::RequestOp kind);
  void WriteRequest(Operation& op, const format::Request& request);
  void OnReply(Link& link, uint32_t slot);
  void OnSent(Operation& op);
  bool PutDelegated(Operation& op);
  void PutStaged(Operation& op);
  void GiveStagingBack(Operation& op);
  void SendChunkRequests(Link& link);
  void OnChunkReply(Link& link, uint32_t slot);
  void AskTime(Link& link);
  void OnTimeReply(Link& link, uint32_t slot);
  // False if the connection failed.
  bool SendOwn(Link& link, uint32_t slot, std::span<std::byte> message);
  void OnReserved(Operation& op);
  void FinishPut(Operation& op, const format::Reply& placed);
  void WriteValue(Operation& op);
  [[nodiscard]] bool FitsInline(const Link& link, const Operation& op) const;
  [[nodiscard]] Status ReplyStatus(const Operation& op, const format::Reply& reply) const;
  void ReleaseSlot(Operation& op);
  void PassSlotOn(Link& link, uint32_t slot);

  const std::shared_ptr<fabric::Fabric> fabric_;
  const std::string address_;
  const EngineOptions options_;
  const Clock& clock_;
  std::unique_ptr<fabric::CompletionQueue> queue_;

  bool geometry_known_ = false;
  format::Geometry geometry_{};
  std::array<uint8_t, 16> pool_uuid_{};
  HashSeed hash_seed_{};  // of that pool; before the first connection it is not known, and another one does

  std::vector<std::byte> op_memory_;
  std::unique_ptr<fabric::Region> op_region_;
  std::vector<Operation> ops_;  // queue_depth + 1: one may be in its callback
  std::vector<OpIndex> free_ops_;
  KeyOrder key_order_;
  std::vector<OpIndex> done_;  // their callbacks run in the next Poll
  LocationCache locations_;
  uint64_t locations_server_ = 0;  // the server_id of which they hold
  uint32_t in_flight_ = 0;
  uint64_t finished_ = 0;
  uint64_t next_request_id_ = 1;
  uint32_t polls_ = 0;
  uint32_t gets_now_ = 0;
  const bool reads_in_order_;  // the fabric's word
  bool misses_ = false;        // the last get that sought an entry found none at its first look
  bool polling_ = false;
  bool out_of_memory_ = false;  // something could not be done: the next Poll ends all
  bool went_on_ = false;
  bool gathering_ = false;         // more than one operation goes on in this Poll
  std::vector<OpIndex> to_start_;  // gets, by the next FlushPosts
  std::vector<Link*> to_flush_;    // where something is gathered
  std::exception_ptr thrown_;      // by a callback of this Poll
  Nanoseconds reported_at_{0};
  Nanoseconds next_check_{0};          // of deadlines
  const Link* report_link_ = nullptr;  // where a report is under way, in the memory behind the operations'
  Status connect_error_;
  ClientStats stats_;

  std::array<fabric::Completion, 64> completions_;
  std::vector<std::unique_ptr<Link>> links_;  // by shard
  // Until the Poll that closed them is over. What they may use, above, outlives them.
  std::vector<Link::Connection> closed_;
};

}  // namespace erda::client

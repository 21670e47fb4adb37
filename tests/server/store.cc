#include "server/store.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/crc32c.h"
#include "base/test_hash.h"
#include "format/log_layout.h"

namespace erda::server {

namespace {

std::unique_ptr<nvm::Pool> DramPool(uint64_t size) {
  nvm::PoolOptions options;
  options.path = "dram:";
  options.size = size;
  return nvm::Pool::Open(options).value();
}

format::Geometry GeometryOf(const StoreOptions& options) {
  const format::Geometry made = format::ChooseGeometry(options.wish).value();
  return options.grown_to == 0 ? made : format::GrownGeometry(made, options.grown_to).value();
}

}  // namespace

Store::Store(const StoreOptions& options, std::unique_ptr<nvm::Pool> pool)
    : options_(options), geometry_(GeometryOf(options)), pool_(pool ? std::move(pool) : DramPool(geometry_.pool_size)) {
  if (options_.take_up == TakeUp::kOpen) Open();
  if (options_.take_up == TakeUp::kRecover) Recover();
}

void Store::MakeVersions() {
  together_ = false;
  delegated_.clear();
  cleaning_.reset();
  versions_.reset();
  control_.assign(format::ControlBytes(geometry_) / sizeof(uint64_t), 0);
  nvm_ = std::make_unique<nvm::Writer>(*pool_);
  const VersionsOptions options{options_.reservations_per_session, &time_, ExpiryClock::kNoteAhead, kTestHashSeed};
  versions_ = std::make_unique<Versions>(*nvm_, geometry_, kPoolSeed, options_.shard,
                                         std::as_writable_bytes(std::span(control_)), options);
  queues_ = std::make_unique<CleanQueues>();
  cleaner_ = std::make_unique<Cleaner>(*pool_, geometry_, kPoolSeed, options_.shard,
                                       std::as_writable_bytes(std::span(control_)), *queues_, time_);
  cleaning_ =
      std::make_unique<CleaningPolicy>(*versions_, geometry_, std::as_writable_bytes(std::span(control_)), *queues_);
}

void Store::Open() {
  MakeVersions();
  const Status status = versions_->part().Open();
  ASSERT_TRUE(status.ok()) << status.ToString();
  cleaning_->Begin();
}

void Store::Recover() {
  MakeVersions();
  const Status status = versions_->part().Look();
  ASSERT_TRUE(status.ok()) << status.ToString();
  recovery_ = versions_->part().Repair();
  cleaning_->Begin();
}

Status Store::Verify(std::vector<std::string>* damaged) {
  MakeVersions();
  if (auto status = versions_->part().LookUnvouched(); !status.ok()) return status;
  const auto tell = [&](std::string_view key) { damaged->emplace_back(key); };
  if (auto status = versions_->part().Verify(tell, &recovery_); !status.ok()) return status;
  cleaning_->Begin();
  return {};
}

bool Store::CleanStep() {
  const bool cleaned = cleaner_->Step();
  return cleaning_->Step() > 0 || cleaned;
}

void Store::Clean() {
  versions_->growth().CountKeys(versions_->index().size());
  while (CleanStep()) {
  }
}

Outcome Store::Put(std::string_view key, std::string_view value) {
  versions_->growth().CountKeys(versions_->index().size());
  for (;;) {
    const Outcome outcome = Inline(key, value);
    if (outcome.reason != format::Reason::kLogFull || !cleaning_->waiting().Expects(outcome.head)) return outcome;
    const uint64_t rooms = cleaning_->waiting().rooms();
    while (cleaning_->waiting().rooms() == rooms) {
      if (!CleanStep()) cleaning_->waiting().LosePatience(std::chrono::milliseconds(100));
    }
  }
}

format::HeadSlot Store::Published(uint32_t head_of_shard, uint32_t slot) const {
  const auto control = std::as_bytes(std::span(control_));
  return format::HeadSlot(LoadAs<uint64_t>(control.subspan(format::HeadSlotOffset(geometry_, head_of_shard, slot))));
}

uint64_t Store::Keys() {
  versions_->growth().CountKeys(versions_->index().size());
  return versions_->index().census().used();
}

void Store::CloseAndReopen() {
  Close();
  Open();
}

Outcome Store::Inline(std::string_view key, std::string_view value, Ack ack) {
  const Outcome outcome = versions_->puts().PutInline(key, HashKey(key), AsBytes(value), ack, Deadline());
  if (!together_) (void)versions_->PublishPuts();
  return outcome;
}

Reserved Store::Reserve(std::string_view key, std::string_view value, SessionId session, Ack ack) {
  Reserved reserved{{}, std::string(key), std::string(value), session};
  const format::FlushMethod flush = FlushOf(session);
  reserved.flushed_by_read = ack == Ack::kPersisted && flush == format::FlushMethod::kReadAfterWrite;
  reserved.outcome = versions_->puts().Reserve(key, HashKey(key), static_cast<uint32_t>(value.size()), ack, session,
                                               flush, Deadline());
  if (!together_) (void)versions_->PublishPuts();
  return reserved;
}

client::Delegated& Store::DelegatedOf(SessionId session) {
  const auto [it, made] = delegated_.try_emplace(session);
  const uint32_t heads = geometry_.heads_per_shard;
  if (made) it->second.Reset(options_.shard * heads, heads, format::ChunkBytesMax(geometry_));
  return it->second;
}

void Store::SendChunkRequests(SessionId session) {
  client::Delegated& delegated = DelegatedOf(session);
  for (; !delegated.to_send.empty(); delegated.to_send.pop_front()) {
    const format::Request request = delegated.to_send.front();
    if (request.op == static_cast<uint8_t>(format::RequestOp::kGiveBack)) {
      versions_->delegating().GiveBack(request.head, format::LogAddress(request.address), request.version, session);
      continue;
    }
    const Outcome given = versions_->delegating().Delegate(request.head, request.version, request.value_size, session);
    if (given.code != Code::kOk) {
      delegated.OnRefused(request.head);
      continue;
    }
    EXPECT_TRUE(given.header.is_chunk());
    EXPECT_GE(SpaceOf(given.header), request.version);
    EXPECT_LE(SpaceOf(given.header), request.value_size);
    format::Reply reply{};
    reply.address = given.address.raw();
    reply.generation = given.generation;
    reply.header = given.header;
    delegated.OnDelegated(request.head, reply);
  }
}

client::Delegated::Chunk* Store::ChunkFor(uint32_t head, uint64_t object_bytes, SessionId session) {
  client::Delegated& delegated = DelegatedOf(session);
  if (auto* chunk = delegated.Find(head, object_bytes)) return chunk;
  SendChunkRequests(session);
  return delegated.Find(head, object_bytes);
}

void Store::WriteInto(const client::Delegated::Chunk& chunk, std::string_view key, std::string_view value) {
  const format::HeadSlot slot =
      Published(chunk.head - options_.shard * geometry_.heads_per_shard, geometry_.SlotOf(chunk.address));
  EXPECT_EQ(slot.generation(), chunk.generation) << "(I8)";
  const uint64_t at = geometry_.RegionOffset(slot.region()) + geometry_.OffsetInRegion(chunk.address) + chunk.tail;
  std::ranges::copy(AsBytes(value), pool_->view().bytes.data() + at + format::ValueOffset(LabelSize(key)));
}

std::optional<Outcome> Store::Delegated(std::string_view key, std::string_view value, SessionId session, Ack ack) {
  const uint64_t hash = HashKey(key);
  const uint32_t head = geometry_.HeadOf(hash);
  const uint64_t bytes = format::ObjectSpace(LabelSize(key), value.size());
  client::Delegated::Chunk* chunk = ChunkFor(head, bytes, session);
  if (chunk == nullptr) return std::nullopt;
  WriteInto(*chunk, key, value);
  const format::LogAddress address = DelegatedOf(session).Place(*chunk, bytes);
  const auto outcome = versions_->delegating().Put(key, hash, static_cast<uint32_t>(value.size()),
                                                   Crc32c(0, AsBytes(value)), ack, address, session, Deadline());
  if (!together_) (void)versions_->PublishPuts();
  EXPECT_TRUE(outcome.has_value());
  const bool refused = !outcome || outcome->reason == format::Reason::kNoChunk;
  DelegatedOf(session).OnAnswer(head, address, refused);
  return refused ? std::nullopt : outcome;
}

bool Store::LandDelegated(std::string_view key, std::string_view value, SessionId session) {
  const uint32_t head = geometry_.HeadOf(HashKey(key));
  const auto* chunk = ChunkFor(head, format::ObjectSpace(LabelSize(key), value.size()), session);
  if (chunk != nullptr) WriteInto(*chunk, key, value);
  return chunk != nullptr;
}

void Store::GiveBack() {
  versions_->chunks().TellRevoked(
      [&](SessionId session, format::LogAddress address) { DelegatedOf(session).OnRevoked(address); });
  for (const auto& [session, delegated] : delegated_) SendChunkRequests(session);
}

void Store::EndSession(SessionId session) {
  versions_->EndSession(session);
  delegated_.erase(session);
}

std::optional<Code> Store::Commit(const Reserved& r) { return EndCommit(BeginCommit(r)); }

Versions::Commit Store::BeginCommit(const Reserved& r) {
  Versions::Commit commit{HashKey(r.key), r.outcome.head, r.outcome.address, r.version(), r.session};
  versions_->BeginCommit(&commit);
  return commit;
}

std::optional<Code> Store::EndCommit(const Versions::Commit& commit) {
  const auto outcome = versions_->EndCommit(commit);
  return outcome ? std::optional(outcome->code) : std::nullopt;
}

Code Store::Delete(std::string_view key) {
  return std::get<Outcome>(versions_->removing().Delete(key, HashKey(key))).code;
}

void Store::Report(std::string_view key) { versions_->Report(key, HashKey(key)); }

uint64_t Store::OffsetOf(const Reserved& r) const {
  // The writer finds the place by the region numbers in the control block.
  const format::HeadSlot slot =
      Published(r.outcome.head - options_.shard * geometry_.heads_per_shard, geometry_.SlotOf(r.outcome.address));
  return geometry_.RegionOffset(slot.region()) + geometry_.OffsetInRegion(r.outcome.address);
}

void Store::LandPart(const Reserved& r, size_t bytes) {
  const auto value = AsBytes(r.value);
  const uint32_t checksum = format::ObjectChecksum(r.outcome.header, value);
  std::vector<std::byte> body(format::kChecksumBytes + value.size());
  std::memcpy(body.data(), &checksum, sizeof(checksum));
  if (!value.empty()) std::memcpy(body.data() + sizeof(checksum), value.data(), value.size());
  std::byte* to = pool_->view().bytes.data() + OffsetOf(r) + format::ChecksumOffset(r.outcome.header.label_size());
  std::memcpy(to, body.data(), std::min(bytes, body.size()));
}

std::string Store::Get(std::string_view key, format::FlushMethod flush) const {
  return ReadLikeAClient(Bytes(), std::as_bytes(std::span(control_)), flush, key);
}

format::EntryWord Store::WordOf(std::string_view key) const {
  const uint64_t hash = HashKey(key);
  const auto slot = versions_->index().Find(hash, [](index::Slot, const format::IndexEntry&) { return true; });
  return slot ? versions_->index().WordAt(*slot) : format::EntryWord();
}

format::SegmentState Store::SegmentStateOf(const Reserved& r) const {
  const uint64_t offset = OffsetOf(r) - geometry_.regions_offset;
  const uint64_t segment = geometry_.regions_offset + AlignDown(offset, geometry_.segment_size);
  return static_cast<format::SegmentState>(
      LoadAs<format::SegmentHeader>(pool_->bytes().subspan(segment, sizeof(format::SegmentHeader))).state);
}

uint64_t Store::counter(format::Counter counter) const {
  return control_[offsetof(format::ControlBlock, counters) / sizeof(uint64_t) + static_cast<size_t>(counter)];
}

}  // namespace erda::server

#include "fuzz/pool_server.h"

#include <cstring>

#include "base/test_hash.h"
#include "server/readers.h"

namespace erda::fuzz {

using format::FlushMethod;
using server::Outcome;
using server::SessionId;

PoolServer::Shard::Shard(nvm::Pool& pool, const format::Geometry& geometry, uint32_t seed, uint32_t number)
    : nvm(pool.OfShard(number)),
      control(format::ControlBytes(geometry) / sizeof(uint64_t)),
      versions(nvm, geometry, seed, number, std::as_writable_bytes(std::span(control)), {}) {}

Result<std::unique_ptr<PoolServer>> PoolServer::Open(Image image) {
  auto memory = std::make_unique<MemoryPool>(std::move(image));
  MemoryPool* const kept = memory.get();
  auto server = Take(std::move(memory));
  if (server.ok()) (*server)->memory_ = kept;
  return server;
}

Result<std::unique_ptr<PoolServer>> PoolServer::Take(std::unique_ptr<nvm::Pool> taken) {
  std::unique_ptr<PoolServer> server(new PoolServer());
  auto pool = server::FormattedPool::Take(std::move(taken), {}, {.shards = 0});
  if (!pool.ok()) return pool.status();
  server->pool_ = *std::move(pool);
  for (uint32_t number = 0; number < server->geometry().shards; ++number) {
    server->shards_.push_back(
        std::make_unique<Shard>(server->pool_->pool(), server->geometry(), server->pool_->seed(), number));
  }
  const bool recover = server->pool_->needs_recovery();
  // From here on the journal alone may have what the shards write.
  if (server->pool().holds_later()) {
    if (auto status = server->pool_->MarkOpen(); !status.ok()) return status;
  }
  for (auto& shard : server->shards_) {
    if (auto status = recover ? shard->versions.part().Look() : shard->versions.part().Open(); !status.ok())
      return status;
  }
  if (recover) {
    for (auto& shard : server->shards_) shard->versions.part().Repair();
  }
  // Nothing is served before the disk holds what the recovery found and stored.
  if (auto status = server->pool().AwaitHeld(); !status.ok()) return status;
  if (auto status = server->pool_->MarkOpen(); !status.ok()) return status;
  return server;
}

Outcome PoolServer::Put(std::string_view key, std::string_view value) {
  const uint64_t hash = HashKey(key);
  server::Versions& versions = ShardOf(hash).versions;
  const Outcome outcome = versions.puts().PutInline(key, hash, AsBytes(value), Ack::kPersisted);
  (void)versions.PublishPuts();
  return outcome;
}

Outcome PoolServer::Reserve(std::string_view key, std::string_view value, SessionId session) {
  const uint64_t hash = HashKey(key);
  server::Versions& versions = ShardOf(hash).versions;
  const Outcome outcome = versions.puts().Reserve(key, hash, static_cast<uint32_t>(value.size()), Ack::kPersisted,
                                                  session, FlushMethod::kServerFlush);
  (void)versions.PublishPuts();
  return outcome;
}

void PoolServer::Land(const Outcome& reserved, std::string_view value, size_t bytes) {
  const auto& header = reserved.header;
  const uint32_t in_shard = reserved.head % geometry().heads_per_shard;
  const uint64_t at = format::HeadSlotOffset(geometry(), in_shard, geometry().SlotOf(reserved.address));
  const format::HeadSlot slot(LoadAs<uint64_t>(std::as_bytes(std::span(ShardOf(header.key_hash).control)).subspan(at)));
  std::string body(format::kChecksumBytes, '\0');
  const uint32_t checksum = format::ObjectChecksum(header, AsBytes(value));
  std::memcpy(body.data(), &checksum, sizeof(checksum));
  body += value;
  std::memcpy(pool_->pool().view().bytes.data() + geometry().RegionOffset(slot.region()) +
                  geometry().OffsetInRegion(reserved.address) + format::ChecksumOffset(header.label_size()),
              body.data(), std::min(bytes, body.size()));
}

std::optional<Outcome> PoolServer::Commit(std::string_view key, const Outcome& reserved, SessionId session) {
  const uint64_t hash = HashKey(key);
  server::Versions::Commit commit{hash, reserved.head, reserved.address, reserved.header.version, session};
  ShardOf(hash).versions.BeginCommit(&commit);
  return ShardOf(hash).versions.EndCommit(commit);
}

Outcome PoolServer::Delete(std::string_view key) {
  const uint64_t hash = HashKey(key);
  return std::get<Outcome>(ShardOf(hash).versions.removing().Delete(key, hash));
}

void PoolServer::Report(std::string_view key) {
  const uint64_t hash = HashKey(key);
  ShardOf(hash).versions.Report(key, hash);
}

void PoolServer::EndSession(SessionId session) {
  for (auto& shard : shards_) shard->versions.EndSession(session);
}

void PoolServer::Sweep() {
  for (auto& shard : shards_) shard->versions.Sweep(1000);
}

Status PoolServer::Hold() {
  for (bool again = true; again;) {
    if (auto status = pool_->pool().AwaitHeld(); !status.ok()) return status;
    again = false;
    for (auto& shard : shards_) again |= shard->versions.SettleHeld().later;
  }
  return {};
}

std::string PoolServer::Get(std::string_view key) const {
  const uint64_t hash = HashKey(key);
  const server::PoolBytes bytes{pool_->pool().bytes(), geometry(), pool_->seed(), geometry().ShardOf(hash)};
  return server::ReadLikeAClient(bytes, std::as_bytes(std::span(ShardOf(hash).control)), FlushMethod::kServerFlush,
                                 key);
}

void PoolServer::Close() {
  for (auto& shard : shards_) shard->versions.Close();
  (void)pool_->MarkClosed();  // A sync of memory never fails. After a failure of a journal the pool stays open.
}

}  // namespace erda::fuzz

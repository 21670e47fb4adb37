#include "mirror/primary_pool.h"

#include <chrono>
#include <string>
#include <utility>

#include "base/crypto.h"

namespace erda::mirror {

Result<std::unique_ptr<PrimaryPool>> PrimaryPool::Make(std::unique_ptr<nvm::Pool> pool, const journal::Uuid& uuid,
                                                       uint32_t shards, const PrimaryOptions& options) {
  const bool names_its_mirror = options.links.sync && !options.links.goes_alone;
  if (names_its_mirror != bool(options.keep) || (!names_its_mirror && options.named != 0)) {
    return Status(Code::kInvalidArgument,
                  "a primary names its mirror in its superblock if it stops without that, and only then");
  }
  if (options.links.timeout < std::chrono::milliseconds(1)) {
    return Status(Code::kInvalidArgument, "a primary waits for its mirror for a millisecond at least");
  }
  std::unique_ptr<PrimaryPool> primary(new PrimaryPool(std::move(pool), options));
  for (uint32_t number = 0; number < shards; ++number) {
    if (auto status = primary->MakeShard(uuid, number, options); !status.ok()) return status;
  }
  return primary;
}

// Its medium is the pool, so it fails with that alone.
PrimaryPool::PrimaryPool(std::unique_ptr<nvm::Pool> pool, const PrimaryOptions& options)
    : pool_(std::move(pool)),
      writer_(*pool_),
      health_([] {}, [](const Status& /*status*/) {}),
      membership_(options.named, options.keep) {
  bytes_ = pool_->view().bytes.first(pool_->size());
  durability_ = pool_->durability();
  write_latency_ = pool_->write_latency();
}

Status PrimaryPool::MakeShard(const journal::Uuid& uuid, uint32_t number, const PrimaryOptions& options) {
  if (options.stream_bytes > format::kMirrorStreamBytesMax) {
    return {Code::kInvalidArgument, "the stream of a shard with mirrors cannot have " +
                                        std::to_string(options.stream_bytes) + " bytes, at most " +
                                        std::to_string(format::kMirrorStreamBytesMax)};
  }
  auto shard = std::make_unique<Shard>();
  auto memory = SharedMemory::Create("erda-stream", journal::Stream::MemoryFor(options.stream_bytes));
  if (!memory.ok()) return memory.status();
  shard->memory = *std::move(memory);
  journal::RingLife life;
  FillRandom(std::as_writable_bytes(std::span(life.secret)));
  auto stream = journal::Stream::Format(shard->memory.bytes(), uuid, number, 0, life);
  if (!stream.ok()) return stream.status();
  shard->stream = std::make_unique<journal::Stream>(*stream);
  shard->links = std::make_unique<Links>(*shard->stream, shard->memory.view(), membership_, options.links);
  Links& links = *shard->links;
  shard->pool =
      std::make_unique<ShardPool>(*pool_, *shard->stream,
                                  journal::CapturedPool::Medium{.held = options.links.sync ? &links.held() : nullptr,
                                                                .health = &health_,
                                                                .await_room = [&links] { links.AwaitRoom(); },
                                                                .await_held = [&links] { return links.AwaitHeld(); },
                                                                .ask = [](uint64_t /*waiters*/) {},
                                                                .mirrored = true},
                                  links);
  shards_.push_back(std::move(shard));
  return {};
}

MemoryView PrimaryPool::view() const {
  MemoryView view = pool_->view();
  view.bytes = bytes_;  // Narrow may have made it shorter.
  return view;
}

Status PrimaryPool::AwaitMirror() {
  for (const auto& shard : shards_) {
    if (auto status = shard->pool->AwaitHeld(); !status.ok()) return status;
  }
  return {};
}

Status PrimaryPool::Widen(uint64_t /*kept*/, uint64_t size) {
  return {Code::kInvalidArgument, "a pool with mirrors has " + std::to_string(this->size()) + " bytes and cannot get " +
                                      std::to_string(size) + " while it is open"};
}

}  // namespace erda::mirror

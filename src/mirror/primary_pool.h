// The pool of a primary: a pool on any medium, with a stream and links for each shard (docs/mirror.md).
//
// A shard's writer gets a CapturedPool: it writes back and fences the pool itself, and all that it flushes goes to the
// shard's stream. The superblocks are in no stream. They are written through this pool.
//
// Each PrimaryPool begins new streams, with a new secret. So a mirror of an earlier one makes a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/shared_memory.h"
#include "erda/status.h"
#include "journal/captured_pool.h"
#include "journal/health.h"
#include "journal/stream.h"
#include "mirror/links.h"
#include "mirror/membership.h"
#include "nvm/pool.h"
#include "nvm/writer.h"

namespace erda::mirror {

struct PrimaryOptions {
  uint64_t stream_bytes = 64 << 20;  // Of each shard's stream: one by Stream::IsCapacity.
  LinksOptions links;
  // The mirror that counts by the superblock, and how to change that. A primary that stops without its mirror has them,
  // and no other one.
  uint64_t named = 0;
  Membership::Keep keep = {};
};

// Each shard's thread uses its own part. REQUIRES: the fabrics of the links outlive it.
class PrimaryPool final : public nvm::Pool {
 public:
  // Returns kInvalidArgument for options that do not fit. Returns kResourceExhausted if the memory has no room for the
  // streams.
  static Result<std::unique_ptr<PrimaryPool>> Make(std::unique_ptr<nvm::Pool> pool, const journal::Uuid& uuid,
                                                   uint32_t shards, const PrimaryOptions& options);

  [[nodiscard]] Links& links(uint32_t shard) { return *shards_[shard]->links; }

  [[nodiscard]] MemoryView view() const override;
  [[nodiscard]] nvm::Durability vouched() const override { return pool_->vouched(); }
  [[nodiscard]] bool created() const override { return pool_->created(); }
  [[nodiscard]] bool is_device() const override { return pool_->is_device(); }
  [[nodiscard]] bool written_back() const override { return pool_->written_back(); }
  [[nodiscard]] nvm::LargePages large_pages() const override { return pool_->large_pages(); }
  void RemoveIfCreated() override { pool_->RemoveIfCreated(); }
  // Refuses: the mirrors have the old size.
  Status Widen(uint64_t kept, uint64_t size) override;
  Status Sync(uint64_t offset, uint64_t size) override { return pool_->Sync(offset, size); }
  // Waits for the mirror in all shards. Before that the pool is not closed cleanly: versions wait for the mirror, and
  // are not settled. Returns kUnavailable if a shard stops meanwhile. REQUIRES: no shard's thread runs.
  Status AwaitMirror();
  Status SyncName() override { return pool_->SyncName(); }
  [[nodiscard]] format::BootId boot() const override { return pool_->boot(); }
  [[nodiscard]] bool holds_later() const override { return true; }
  [[nodiscard]] bool has_mirrors() const override { return true; }
  [[nodiscard]] nvm::Pool& OfShard(uint32_t shard) override { return *shards_[shard]->pool; }

 private:
  // A shard's pool. It counts as failed while the shard has stopped.
  class ShardPool final : public journal::CapturedPool {
   public:
    ShardPool(nvm::Pool& image, journal::Stream& stream, Medium medium, const Links& links)
        : CapturedPool(image, stream, std::move(medium)), links_(links) {}
    [[nodiscard]] bool failed() const override { return links_.stopped(); }
    [[nodiscard]] bool lacks_mirror() const override { return links_.stopped(); }

   private:
    const Links& links_;
  };
  struct Shard {
    SharedMemory memory;
    std::unique_ptr<journal::Stream> stream;
    std::unique_ptr<Links> links;
    std::unique_ptr<ShardPool> pool;
  };

  PrimaryPool(std::unique_ptr<nvm::Pool> pool, const PrimaryOptions& options);
  Status MakeShard(const journal::Uuid& uuid, uint32_t number, const PrimaryOptions& options);
  void FlushRange(const std::byte* begin, size_t size) override {
    writer_.Flush(static_cast<uint64_t>(begin - bytes_.data()), size);
  }
  void Drain() override { writer_.Fence(); }

  const std::unique_ptr<nvm::Pool> pool_;
  nvm::Writer writer_;  // For write-backs alone.
  journal::Health health_;
  Membership membership_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace erda::mirror

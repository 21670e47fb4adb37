// A pool with its superblock: created or checked when it is opened, marked while it is open.
#pragma once

#include <memory>
#include <optional>

#include "format/object.h"
#include "format/superblock.h"
#include "nvm/pool.h"
#include "nvm/writer.h"

namespace erda::server {

class FormattedPool {
 public:
  // Makes a pool of bytes that are all new, or checks what is there. Changes nothing of an existing pool: MarkOpen
  // does.
  static Result<std::unique_ptr<FormattedPool>> Open(const nvm::PoolOptions& options, const format::GeometryWish& wish);
  // The same for a pool that was opened elsewhere.
  static Result<std::unique_ptr<FormattedPool>> Take(std::unique_ptr<nvm::Pool> pool, const nvm::PoolOptions& options,
                                                     const format::GeometryWish& wish);

  // Makes a pool, and nothing else. kConflict: something is there already. (A device has to be blank, as for Open.)
  static Result<std::unique_ptr<FormattedPool>> Make(const nvm::PoolOptions& options, const format::GeometryWish& wish);

  [[nodiscard]] nvm::Pool& pool() { return *pool_; }
  [[nodiscard]] const format::Superblock& superblock() const { return superblock_; }
  [[nodiscard]] const format::Geometry& geometry() const { return superblock_.geometry; }
  [[nodiscard]] uint32_t seed() const { return format::PoolSeed(superblock_.uuid); }
  // It was not closed cleanly: its server died or lost power. Each shard must be recovered before it is used.
  [[nodiscard]] bool needs_recovery() const { return needs_recovery_; }
  // Its bytes may be a mixture of pages of different times: the pool was not closed cleanly, lived in a page cache, and
  // the machine was started again since, or a sync failed, or it came to NVM from an ordinary file. Then each shard
  // must be verified in full.
  [[nodiscard]] bool needs_verification() const {
    if (!needs_recovery_) return false;
    if (pool_->durability() == nvm::Durability::kPowerSafe) return superblock_.boot != format::kNoBoot;
    return pool_->durability() == nvm::Durability::kProcessSafe && !IsOfThisBoot();
  }

  // The latest time that a server's clock is known to have been at, in microseconds; 0: of none.
  [[nodiscard]] uint64_t time() const;

  // The next superblock says that the pool is in use / was closed cleanly. Persistent on return, also where a Writer's
  // Fence does not wait for the medium. MarkClosed syncs all other bytes first: a mark never gets to the medium before
  // what it vouches for. After an error of that sync the pool is not marked.
  Status MarkOpen() { return WriteSuperblock(false, Boot()); }
  Status MarkClosed();
  // The next superblock says that the pool is in use, and that nothing vouches for its bytes: a sync failed. An error
  // may be tried again.
  Status MarkUnvouched() { return WriteSuperblock(false, format::kUnvouchedBoot); }

  // The pool gets so many bytes, in place: the one that it was, or the larger one, whenever the power goes meanwhile.
  // It must not be in use: neither marked open, nor may anybody else have its bytes. kConflict: it needs recovery.
  // kInvalidArgument, kResourceExhausted: it cannot have that size (format::GrownGeometry, Pool::Widen).
  Status Grow(uint64_t size);

 private:
  explicit FormattedPool(std::unique_ptr<nvm::Pool> pool) : pool_(std::move(pool)) { nvm_.emplace(*pool_); }
  [[nodiscard]] static bool IsBlank(const nvm::Pool& pool);
  Status Create(const format::GeometryWish& wish);
  Status Check(uint64_t size, const format::GeometryWish& wish);
  Status WriteSuperblock(bool clean, const format::BootId& boot);
  // Of the machine whose page cache has the bytes; nothing vouches for those of an unknown one.
  [[nodiscard]] format::BootId Boot() const {
    const format::BootId boot = pool_->boot();
    const bool unknown = boot == format::kNoBoot && pool_->durability() == nvm::Durability::kProcessSafe;
    return unknown ? format::kUnvouchedBoot : boot;
  }
  [[nodiscard]] bool IsOfThisBoot() const {
    return superblock_.boot != format::kNoBoot && superblock_.boot == pool_->boot();
  }

  std::unique_ptr<nvm::Pool> pool_;
  std::optional<nvm::Writer> nvm_;  // another one once the pool is mapped anew
  format::Superblock superblock_{};
  int copy_ = 1;  // the copy that counts
  bool needs_recovery_ = false;
};

}  // namespace erda::server

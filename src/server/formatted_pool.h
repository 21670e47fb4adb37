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

  // The latest time that a server's clock is known to have been at, in microseconds; 0: of none.
  [[nodiscard]] uint64_t time() const;

  // The next superblock says that the pool is in use / was closed cleanly. Persistent on return.
  void MarkOpen() { WriteSuperblock(false); }
  void MarkClosed() { WriteSuperblock(true); }

  // The pool gets so many bytes, in place: the one that it was, or the larger one, whenever the power goes meanwhile.
  // It must not be in use: neither marked open, nor may anybody else have its bytes. kConflict: it needs recovery.
  // kInvalidArgument, kResourceExhausted: it cannot have that size (format::GrownGeometry, Pool::Widen).
  Status Grow(uint64_t size);

 private:
  explicit FormattedPool(std::unique_ptr<nvm::Pool> pool) : pool_(std::move(pool)) { nvm_.emplace(*pool_); }
  [[nodiscard]] static bool IsBlank(const nvm::Pool& pool);
  Status Create(const format::GeometryWish& wish);
  Status Check(uint64_t size, const format::GeometryWish& wish);
  void WriteSuperblock(bool clean);

  std::unique_ptr<nvm::Pool> pool_;
  std::optional<nvm::Writer> nvm_;  // another one once the pool is mapped anew
  format::Superblock superblock_{};
  int copy_ = 1;  // the copy that counts
  bool needs_recovery_ = false;
};

}  // namespace erda::server

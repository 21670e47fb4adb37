// A pool with its superblock. It creates or checks the superblock when it opens the pool, and marks the pool while it
// is open. One thread at a time calls the functions that change it. Any thread calls the others.
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
  // Makes a pool if all bytes are new, or checks the one that exists. Changes nothing in an existing pool: MarkOpen
  // does.
  // A pool with a journal that was closed cleanly is refused, too: its server could not keep its promises. An owner
  // that serves no clients (`offline`) may open it.
  // A mirror is refused, and so is a primary that names a mirror, unless its pool has mirrors (nvm::Pool::has_mirrors).
  // An `offline` owner may open both. Grow refuses them then.
  static Result<std::unique_ptr<FormattedPool>> Open(const nvm::PoolOptions& options, const format::GeometryWish& wish,
                                                     bool offline = false);
  // The same for a pool that was opened elsewhere.
  static Result<std::unique_ptr<FormattedPool>> Take(std::unique_ptr<nvm::Pool> pool, const nvm::PoolOptions& options,
                                                     const format::GeometryWish& wish, bool offline = false);

  // Makes a pool, and nothing else. Returns kConflict if something is there already. (A device has to be blank, as for
  // Open.)
  // journaled: the pool gets a journal (journal/journaled_pool.h). Until then no server can open it.
  static Result<std::unique_ptr<FormattedPool>> Make(const nvm::PoolOptions& options, const format::GeometryWish& wish,
                                                     bool journaled = false);

  [[nodiscard]] nvm::Pool& pool() { return *pool_; }
  [[nodiscard]] const format::Superblock& superblock() const { return superblock_; }
  [[nodiscard]] const format::Geometry& geometry() const { return superblock_.geometry; }
  [[nodiscard]] uint32_t seed() const { return format::PoolSeed(superblock_.uuid); }
  // Returns true if the pool was not closed cleanly: its server died or lost power. Each shard must then be recovered
  // before it is used.
  [[nodiscard]] bool needs_recovery() const { return needs_recovery_; }
  // Returns true if the bytes may be a mixture of pages of different times. That is so for a pool that was not closed
  // cleanly, in one of four cases. It lived in a page cache, and the machine was started again since. A sync failed.
  // It came to NVM from an ordinary file. It is a mirror that was promoted by force. Each shard must then be verified
  // in full.
  [[nodiscard]] bool needs_verification() const { return needs_recovery_ && !IsVouched(); }

  // Returns the latest known time of a server's clock, in microseconds; 0: no time is known.
  [[nodiscard]] uint64_t time() const;

  // MarkOpen writes a superblock which says that the pool is in use. MarkClosed writes one which says that it was
  // closed cleanly. Both are persistent on return, also where a Writer's Fence does not wait for the medium. MarkClosed
  // syncs all other bytes first: the mark must not reach the medium before the bytes that it vouches for. If that sync
  // fails, the pool is not marked.
  Status MarkOpen() { return Mark(false, Boot()); }
  Status MarkClosed();
  // Writes a superblock which says that the pool is in use, and that nothing vouches for its bytes, since a sync
  // failed. After an error the caller may try again.
  Status MarkUnvouched();

  // Says what the pool is among mirrored pools (docs/mirror.md). Both copies of the superblock say it on return,
  // persistently. Whether the pool is in use stays as it is; with a journal it then is. After an error the medium may
  // have the old role or the new one. The caller must go on as with the old one, or try again. Requires for kInSync:
  // the medium holds all that the mirror must have. Returns kInvalidArgument for an id that does not fit the role, and
  // for an epoch before the pool's. Returns it also if a mirror is to be none, which only Promote does, and if another
  // pool than a mirror is to be kInSync.
  Status MarkMirror(format::MirrorRole role, uint64_t mirror_id, uint32_t epoch);
  // Makes a primary of a mirror that is in sync. Raises the epoch, and leaves the pool in need of recovery. Both copies
  // of the superblock say so on return, persistently. After an error the pool may be a mirror or a primary.
  // Returns kInvalidArgument if the pool is no mirror. Returns kConflict if the mirror may lack acknowledged puts: it
  // is not in sync, or nothing vouches for its bytes. `force` promotes it nevertheless.
  Status Promote(bool force);

  // Makes the pool `size` bytes large, in place. After a power cut meanwhile it is the old pool or the larger one.
  // Requires: the pool is not marked open, and nobody else uses its bytes. Returns kConflict if the pool needs
  // recovery, is a mirror, or names one. Returns kInvalidArgument or kResourceExhausted if it cannot have that size
  // (format::GrownGeometry, Pool::Widen).
  Status Grow(uint64_t size);

 private:
  explicit FormattedPool(std::unique_ptr<nvm::Pool> pool) : pool_(std::move(pool)) { nvm_.emplace(*pool_); }
  [[nodiscard]] static bool IsBlank(const nvm::Pool& pool);
  static Result<std::unique_ptr<FormattedPool>> Take(std::unique_ptr<FormattedPool> formatted,
                                                     const nvm::PoolOptions& options, const format::GeometryWish& wish,
                                                     bool offline);
  Status Create(const format::GeometryWish& wish);
  Status Check(uint64_t size, const format::GeometryWish& wish, bool offline);
  [[nodiscard]] Status CheckJournal(bool offline) const;
  [[nodiscard]] Status CheckMirror(bool offline) const;
  Status Mark(bool clean, const format::BootId& boot);
  Status WriteSuperblock(format::Superblock next);
  Status WriteBothCopies(const format::Superblock& next);
  [[nodiscard]] format::Superblock InUse() const;
  // Returns the boot id of the machine whose page cache has the bytes. If the boot id is unknown, nothing vouches for
  // the bytes.
  [[nodiscard]] format::BootId Boot() const {
    const format::BootId boot = pool_->boot();
    const bool unknown = boot == format::kNoBoot && pool_->durability() == nvm::Durability::kProcessSafe;
    return unknown ? format::kUnvouchedBoot : boot;
  }
  // Returns false if bytes of a pool that is in use may be lost, or may be of several times.
  [[nodiscard]] bool IsVouched() const {
    if (pool_->durability() == nvm::Durability::kPowerSafe) return superblock_.boot == format::kNoBoot;
    return pool_->durability() != nvm::Durability::kProcessSafe || IsOfThisBoot();
  }
  [[nodiscard]] bool IsOfThisBoot() const {
    return superblock_.boot != format::kNoBoot && superblock_.boot == pool_->boot();
  }

  std::unique_ptr<nvm::Pool> pool_;
  std::optional<nvm::Writer> nvm_;  // a new one once Grow has mapped the pool again
  // The one that counts. But it says that the pool is in use if the other copy is damaged, and may have said so.
  format::Superblock superblock_{};
  int copy_ = 1;  // the copy that counts
  // One copy has a role that the pool did not get, since a sync failed. The next mark replaces both copies.
  bool copies_differ_ = false;
  bool needs_recovery_ = false;
};

}  // namespace erda::server

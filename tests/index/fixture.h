// Helpers of the index's tests: an index in a separate pool, and hashes of keys.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/random.h"
#include "format/geometry.h"
#include "index/index.h"
#include "nvm/pool.h"
#include "nvm/writer.h"

namespace erda::index {

// The index of one shard of two, in DRAM.
class TestIndex {
 public:
  static constexpr uint32_t kShard = 1;

  // slots: the number of slots of the shard's index, at least 64.
  explicit TestIndex(uint64_t slots);

  [[nodiscard]] const format::Geometry& geometry() const { return geometry_; }
  [[nodiscard]] nvm::Pool& pool() { return *pool_; }
  [[nodiscard]] nvm::Writer& nvm() { return *nvm_; }
  [[nodiscard]] uint64_t* displacements() { return &displacements_; }
  // Returns the reaches that the control block tells.
  [[nodiscard]] format::Reaches told_reaches() const { return format::Reaches(reaches_); }
  [[nodiscard]] Published published() { return {&displacements_, &blocks_, &reaches_, runs_}; }
  Index& operator*() { return *index_; }
  Index* operator->() { return index_.get(); }
  // Opens the same pool again.
  void Reopen();

  // Finds a slot in the key's neighbourhood, and enters an entry. Returns false if there is no room.
  bool Insert(uint64_t key_hash, uint32_t address = 1);
  // Does the same, in the key's window if its neighbourhood has no room.
  bool InsertFar(uint64_t key_hash, uint32_t address = 1);
  [[nodiscard]] std::optional<Slot> Find(uint64_t key_hash) const;
  bool Free(uint64_t key_hash);

  // Checks that these keys and no others have entries. Each entry stands in its key's window, once, and states its
  // distance from home. The census has their number.
  [[nodiscard]] testing::AssertionResult IsSound(const std::unordered_set<uint64_t>& keys) const;

 private:
  void Enter(Slot slot, uint64_t key_hash, uint32_t address);

  format::Geometry geometry_{};
  std::unique_ptr<nvm::Pool> pool_;
  std::optional<nvm::Writer> nvm_;
  uint64_t displacements_ = 0;
  uint64_t blocks_ = 0;
  uint64_t reaches_ = 0;
  std::vector<uint32_t> runs_ = std::vector<uint32_t>(64);
  std::unique_ptr<Index> index_;
};

// Makes hashes of keys. No two have the same tag.
class KeySource {
 public:
  explicit KeySource(uint64_t seed) : random_(seed) {}
  uint64_t Next();
  Random& random() { return random_; }

 private:
  Random random_;
  std::unordered_set<uint32_t> tags_;
};

// Returns the settled word of a key with one version.
inline format::EntryWord WordOf(uint32_t address) {
  return format::EntryWord().Published(format::LogAddress(address)).Settled();
}

}  // namespace erda::index

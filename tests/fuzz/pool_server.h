// The shards of a server over a pool in memory, or over one with a journal, without threads and clients. It opens,
// recovers and closes the pool as server_shards.cc does.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nvm/pool.h"
#include "server/pool/formatted_pool.h"
#include "server/versions/versions.h"

namespace erda::fuzz {

using Image = std::vector<uint64_t>;  // words, for their alignment

class MemoryPool final : public nvm::Pool {
 public:
  explicit MemoryPool(Image image) : image_(std::move(image)) {
    bytes_ = std::as_writable_bytes(std::span(image_));
    durability_ = nvm::Durability::kPowerSafe;
  }
  [[nodiscard]] MemoryView view() const override { return {bytes_, -1, -1}; }
  [[nodiscard]] bool created() const override { return false; }
  void RemoveIfCreated() override {}
  Status Widen(uint64_t /*kept*/, uint64_t /*size*/) override { return Status(Code::kInvalidArgument); }
  [[nodiscard]] const Image& image() const { return image_; }

  std::function<void()> before_fence;

 private:
  void FlushRange(const std::byte* /*begin*/, size_t /*size*/) override {}
  void Drain() override {
    if (before_fence) before_fence();
  }

  Image image_;
};

class PoolServer {
 public:
  // Opens the pool, and recovers it if it was not closed cleanly. Changes nothing in a pool that it refuses.
  static Result<std::unique_ptr<PoolServer>> Open(Image image);
  // The same for a pool that was opened elsewhere. Its owner calls neither image() nor memory().
  static Result<std::unique_ptr<PoolServer>> Take(std::unique_ptr<nvm::Pool> pool);

  // Each request goes to the shard of its key.
  server::Outcome Put(std::string_view key, std::string_view value);
  server::Outcome Reserve(std::string_view key, std::string_view value, server::SessionId session);
  // Writes checksum and value into the reserved place, or only their first bytes.
  void Land(const server::Outcome& reserved, std::string_view value, size_t bytes = SIZE_MAX);
  std::optional<server::Outcome> Commit(std::string_view key, const server::Outcome& reserved,
                                        server::SessionId session);
  server::Outcome Delete(std::string_view key);
  void Report(std::string_view key);
  void EndSession(server::SessionId session);
  void Sweep();
  // On a pool with a journal: waits until the disk holds all that the shards flushed, and settles it. Each request must
  // be held before the next one of its key.
  Status Hold();
  // Reads the key as a client does. tests/server/readers.h names the texts that it returns without a value.
  [[nodiscard]] std::string Get(std::string_view key) const;
  void Close();

  [[nodiscard]] const format::Geometry& geometry() const { return pool_->geometry(); }
  [[nodiscard]] nvm::Pool& pool() { return pool_->pool(); }
  [[nodiscard]] const Image& image() const { return memory_->image(); }
  [[nodiscard]] MemoryPool& memory() { return *memory_; }
  // Returns true while the shard moves an index entry.
  [[nodiscard]] bool Moving(uint32_t shard) const { return shards_[shard]->control[0] % 2 != 0; }

 private:
  struct Shard {
    Shard(nvm::Pool& pool, const format::Geometry& geometry, uint32_t seed, uint32_t number);
    nvm::Writer nvm;
    std::vector<uint64_t> control;
    server::Versions versions;
  };
  PoolServer() = default;
  [[nodiscard]] Shard& ShardOf(uint64_t key_hash) const { return *shards_[geometry().ShardOf(key_hash)]; }

  MemoryPool* memory_ = nullptr;
  std::unique_ptr<server::FormattedPool> pool_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace erda::fuzz

// The versions of one shard, which its caller changes directly: without a fabric, a client and a request.
//
// Owns the pool, the control memory and the shard's part of the pool. No cleaner runs. One thread calls it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "server/control/control_memory.h"
#include "server/pool/formatted_pool.h"
#include "server/shard_data.h"

namespace erda::micro {

class DirectShard {
 public:
  static Result<std::unique_ptr<DirectShard>> Make();
  DirectShard(std::unique_ptr<server::FormattedPool> pool, server::ControlMemory control)
      : pool_(std::move(pool)), control_(std::move(control)), data_(*pool_, 0, control_, {}) {}
  DirectShard(const DirectShard&) = delete;
  DirectShard& operator=(const DirectShard&) = delete;

  // Puts a value as the shard serves an inline put that comes alone: writes it, and publishes it.
  Code Put(std::string_view key, std::string_view value) {
    const uint64_t hash = HashOf(key);
    const server::Outcome outcome = data_.versions().puts().PutInline(key, hash, AsBytes(value), Ack::kPersisted);
    (void)data_.versions().PublishPuts();
    return outcome.code;
  }

  // Returns the key's newest version as it stands in the log, or nothing if it is not whole.
  [[nodiscard]] std::optional<std::string> Get(std::string_view key);

  [[nodiscard]] server::FormattedPool& pool() { return *pool_; }
  [[nodiscard]] std::span<const std::byte> control() const { return control_.bytes(); }

 private:
  Status Prepare();
  [[nodiscard]] uint64_t HashOf(std::string_view key) const { return HashKey(key, pool_->superblock().hash_seed); }

  const std::unique_ptr<server::FormattedPool> pool_;
  server::ControlMemory control_;
  server::ShardData data_;
};

}  // namespace erda::micro

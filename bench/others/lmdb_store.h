// LMDB as a store of the benchmark: a file that many processes may map at once.
#pragma once

#include <lmdb.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bench/others/embedded_store.h"
#include "erda/client.h"
#include "erda/status.h"

namespace erda::bench {

// A get is a read-only transaction. Puts that are in flight together are one transaction. By default its commit
// includes a sync of the file, so that puts survive a power cut.
//
// The address may have options:
//   nosync    The commit does not sync. Puts then survive the death of any process, but not a power cut.
//   writemap  LMDB writes through the mapping.
//   size=4G   The size of the map, beyond which the file cannot grow. This is the default.
class LmdbStore : public EmbeddedStore {
 public:
  // `address` is the part after "lmdb:".
  [[nodiscard]] static Result<std::unique_ptr<Store>> Open(const std::string& address, const ClientOptions& options);
  ~LmdbStore() override;

 private:
  class Environment;
  using Transaction = std::unique_ptr<MDB_txn, void (*)(MDB_txn*)>;

  LmdbStore(std::shared_ptr<Environment> environment, Transaction reader, const ClientOptions& options);

  Result<size_t> Read(std::string_view key, std::span<std::byte> out) override;
  Status Write(std::span<const Record> records) override;

  const std::shared_ptr<Environment> environment_;
  const Transaction reader_;  // Reset between two gets: it then holds no old pages.
};

}  // namespace erda::bench

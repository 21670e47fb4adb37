// RocksDB as a store of the benchmark: a log-structured merge tree in a folder that one process opens.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bench/others/embedded_store.h"
#include "erda/client.h"
#include "erda/status.h"

namespace rocksdb {  // NOLINT(readability-identifier-naming): the library's name
class DB;
}

namespace erda::bench {

// Puts that are in flight together are one batch. It goes into the write-ahead log by write(2), so puts survive the
// death of the process, but not a power cut. All threads share the database. Another process cannot open it meanwhile.
//
// The address may have options:
//   sync      Each batch syncs the log, so that puts survive a power cut.
//   cache=1G  The size of the block cache. This is the default.
// Blocks have a bloom filter of 10 bits for each key. They are not compressed, since the values are random. All other
// settings are RocksDB's defaults.
class RocksdbStore : public EmbeddedStore {
 public:
  // `address` is the part after "rocksdb:".
  [[nodiscard]] static Result<std::unique_ptr<Store>> Open(const std::string& address, const ClientOptions& options);
  ~RocksdbStore() override;

 private:
  struct Database;

  RocksdbStore(std::shared_ptr<Database> database, const ClientOptions& options);

  Result<size_t> Read(std::string_view key, std::span<std::byte> out) override;
  Status Write(std::span<const Record> records) override;

  const std::shared_ptr<Database> database_;
};

}  // namespace erda::bench

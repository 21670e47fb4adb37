#include "bench/others/rocksdb_store.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <cstring>
#include <utility>

#include "bench/others/file_address.h"

namespace erda::bench {
namespace {

constexpr std::array<FileAddress::Option, 2> kRocksdbOptions = {{{"sync", false}, {"cache", true}}};
constexpr uint64_t kCacheBytes = uint64_t{1} << 30;
constexpr double kFilterBits = 10;

rocksdb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

Status Describe(const rocksdb::Status& status) {
  if (status.ok()) return {};
  if (status.IsNotFound()) return Status(Code::kNotFound);
  Code code = Code::kInternal;
  if (status.IsIOError()) code = Code::kUnavailable;
  if (status.IsNoSpace() || status.IsMemoryLimit()) code = Code::kResourceExhausted;
  if (status.IsInvalidArgument()) code = Code::kInvalidArgument;
  if (status.IsCorruption()) code = Code::kCorruption;
  return {code, fmt::format("RocksDB: {}", status.ToString())};
}

}  // namespace

struct RocksdbStore::Database {
  std::unique_ptr<rocksdb::DB> db;
  rocksdb::WriteOptions write;

  static Result<std::shared_ptr<Database>> Open(const std::string& address);
};

Result<std::shared_ptr<RocksdbStore::Database>> RocksdbStore::Database::Open(const std::string& address) {
  const auto parsed = FileAddress::Parse("rocksdb", address, kRocksdbOptions);
  if (!parsed.ok()) return parsed.status();
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(parsed->size("cache", kCacheBytes));
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBits));
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB* opened = nullptr;
  if (Status status = Describe(rocksdb::DB::Open(options, parsed->path(), &opened)); !status.ok()) return status;
  auto database = std::make_shared<Database>();
  database->db.reset(opened);
  database->write.sync = parsed->has("sync");
  return database;
}

Result<std::unique_ptr<Store>> RocksdbStore::Open(const std::string& address, const ClientOptions& options) {
  static SharedObjects<Database> databases;
  auto database = databases.Find(address, [&address] { return Database::Open(address); });
  if (!database.ok()) return database.status();
  return std::unique_ptr<Store>(new RocksdbStore(*std::move(database), options));
}

RocksdbStore::RocksdbStore(std::shared_ptr<Database> database, const ClientOptions& options)
    : EmbeddedStore(options), database_(std::move(database)) {}

RocksdbStore::~RocksdbStore() = default;

Result<size_t> RocksdbStore::Read(std::string_view key, std::span<std::byte> out) {
  rocksdb::DB& db = *database_->db;
  rocksdb::PinnableSlice value;  // Pins the value's block instead of copying it.
  const rocksdb::Status status = db.Get(rocksdb::ReadOptions(), db.DefaultColumnFamily(), ToSlice(key), &value);
  if (!status.ok()) return Describe(status);
  if (!value.empty() && value.size() <= out.size()) std::memcpy(out.data(), value.data(), value.size());
  return value.size();
}

Status RocksdbStore::Write(std::span<const Record> records) {
  if (records.size() == 1) {
    return Describe(database_->db->Put(database_->write, ToSlice(records[0].key), ToSlice(records[0].value)));
  }
  rocksdb::WriteBatch batch;
  for (const Record& record : records) {
    const rocksdb::Status status = batch.Put(ToSlice(record.key), ToSlice(record.value));
    if (!status.ok()) return Describe(status);
  }
  return Describe(database_->db->Write(database_->write, &batch));
}

}  // namespace erda::bench

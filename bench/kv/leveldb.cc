// LevelDB, with the paper's settings: puts are not synced.
#include <leveldb/cache.h>
#include <leveldb/db.h>

#include "bench/kv/store.h"

namespace erda::kv {

namespace {

class LevelDbStore final : public Store {
 public:
  LevelDbStore(std::unique_ptr<leveldb::Cache> cache, std::unique_ptr<leveldb::DB> db)
      : cache_(std::move(cache)), db_(std::move(db)) {}
  bool Put(std::string_view key, std::string_view value) override {
    return db_->Put({}, {key.data(), key.size()}, {value.data(), value.size()}).ok();
  }
  bool Get(std::string_view key, std::string& value) override {
    return db_->Get({}, {key.data(), key.size()}, &value).ok();
  }

 private:
  const std::unique_ptr<leveldb::Cache> cache_;  // Before the database, which uses it.
  const std::unique_ptr<leveldb::DB> db_;
};

}  // namespace

const char* const kStoreName = "leveldb";

Result<std::unique_ptr<Store>> MakeStore(const std::string& folder) {
  std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(256 << 20));
  leveldb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 20;
  options.block_cache = cache.get();
  leveldb::DB* db = nullptr;
  const auto opened = leveldb::DB::Open(options, folder + "/leveldb", &db);
  if (!opened.ok()) return Status(Code::kInternal, "leveldb: " + opened.ToString());
  return std::unique_ptr<Store>(std::make_unique<LevelDbStore>(std::move(cache), std::unique_ptr<leveldb::DB>(db)));
}

}  // namespace erda::kv

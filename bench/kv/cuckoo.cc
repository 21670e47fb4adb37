// libcuckoo, a concurrent hash table in memory.
#include <libcuckoo/cuckoohash_map.hh>

#include "bench/kv/store.h"

namespace erda::kv {

namespace {

class CuckooStore final : public Store {
 public:
  bool Put(std::string_view key, std::string_view value) override {
    table_.insert_or_assign(std::string(key), std::string(value));
    return true;
  }
  bool Get(std::string_view key, std::string& value) override { return table_.find(std::string(key), value); }

 private:
  libcuckoo::cuckoohash_map<std::string, std::string> table_;
};

}  // namespace

const char* const kStoreName = "cuckoo";

Result<std::unique_ptr<Store>> MakeStore(const std::string& /*folder*/) {
  return std::unique_ptr<Store>(std::make_unique<CuckooStore>());
}

}  // namespace erda::kv

#include "bench/micro/shard.h"

#include <memory>
#include <string>
#include <utility>

#include "bench/micro/direct_shard.h"
#include "bench/micro/fixed_pool.h"
#include "bench/micro/inputs.h"

namespace erda::micro {

namespace {

class ShardPut {
 public:
  static Result<std::unique_ptr<ShardPut>> Make(size_t bytes) {
    auto shard = DirectShard::Make();
    if (!shard.ok()) return shard.status();
    return std::make_unique<ShardPut>(bytes, *std::move(shard));
  }
  ShardPut(size_t bytes, std::unique_ptr<DirectShard> shard) : value_(ValueOf(bytes)), shard_(std::move(shard)) {}

  void Run() { failures_ += shard_->Put(keys_.Next(), value_) == Code::kOk ? 0 : 1; }
  [[nodiscard]] Status Check() const {
    for (const std::string& key : keys_.all()) {
      if (shard_->Get(key) != value_) return WrongUnless(false);
    }
    return WrongUnless(failures_ == 0);
  }

 private:
  const std::string value_;
  Keys keys_;
  const std::unique_ptr<DirectShard> shard_;
  uint64_t failures_ = 0;
};

}  // namespace

void AddShards(Suite& suite) {
  for (const size_t bytes : kSizes) {
    suite.Add(NameOf("shard_put", bytes), PutsMost(bytes), [bytes] { return ShardPut::Make(bytes); });
  }
}

}  // namespace erda::micro

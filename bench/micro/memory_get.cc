#include "bench/micro/memory_get.h"

#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "bench/micro/direct_shard.h"
#include "bench/micro/inputs.h"
#include "bench/micro/memory_fabric.h"
#include "client/engine.h"

namespace erda::micro {

namespace {

using client::Engine;

class MemoryGet {
 public:
  static Result<std::unique_ptr<MemoryGet>> Make(size_t bytes) {
    auto shard = DirectShard::Make();
    if (!shard.ok()) return shard.status();
    const auto fabric = std::make_shared<MemoryFabric>((*shard)->pool(), (*shard)->control());
    client::EngineOptions options;
    options.client_id = 1;
    auto engine = Engine::Create(fabric, "memory:", options, SteadyClock::Instance());
    if (!engine.ok()) return engine.status();
    auto get = std::make_unique<MemoryGet>(bytes, *std::move(shard), *std::move(engine));
    if (auto status = get->Prepare(); !status.ok()) return status;
    return get;
  }
  MemoryGet(size_t bytes, std::unique_ptr<DirectShard> shard, std::unique_ptr<Engine> engine)
      : value_(ValueOf(bytes)), shard_(std::move(shard)), engine_(std::move(engine)) {}

  // Does as a synchronous call: the engine leaves some gets to an operation.
  void Run() {
    const std::string& key = keys_.Next();
    const Engine::Now now = engine_->GetNow(key, &found_);
    if (now == Engine::Now::kNo) return GetByOperation(key);
    failures_ += now == Engine::Now::kValue && found_.value.size() == value_.size() ? 0 : 1;
  }
  [[nodiscard]] Status Check() {
    Run();
    return WrongUnless(failures_ == 0 && found_.value == value_);
  }

 private:
  // Enough for any step, since no step needs an answer of another thread.
  static constexpr int kPollsMost = 100;

  // Puts the keys, connects, and lets the engine learn the keys' locations.
  Status Prepare() {
    for (const std::string& key : keys_.all()) {
      if (shard_->Put(key, value_) != Code::kOk) return WrongUnless(false);
    }
    for (int polls = 0;; ++polls) {
      const auto up = engine_->connections().Connect();
      if (!up.ok()) return up.status();
      if (*up) break;
      if (polls == kPollsMost) return {Code::kTimeout, "the engine does not connect"};
      engine_->Poll();
    }
    for (const std::string& key : keys_.all()) GetByOperation(key);
    return WrongUnless(failures_ == 0);
  }
  void GetByOperation(const std::string& key) {
    bool is_right = false;
    const Status started = engine_->Get(
        key, [&](const Result<std::string_view>& value) { is_right = value.ok() && value->size() == value_.size(); });
    for (int polls = 0; started.ok() && engine_->in_flight() > 0 && polls < kPollsMost; ++polls) engine_->Poll();
    failures_ += is_right ? 0 : 1;
  }

  const std::string value_;
  Keys keys_;
  const std::unique_ptr<DirectShard> shard_;
  const std::unique_ptr<Engine> engine_;
  VersionedView found_;
  uint64_t failures_ = 0;
};

}  // namespace

void AddMemoryGets(Suite& suite) {
  for (const size_t bytes : kSizes) {
    suite.Add(NameOf("memory_get", bytes), 0, [bytes] { return MemoryGet::Make(bytes); });
  }
}

}  // namespace erda::micro

#include "bench/micro/direct_shard.h"

#include "bench/micro/fixed_pool.h"
#include "server/versions/find_key.h"

namespace erda::micro {

Result<std::unique_ptr<DirectShard>> DirectShard::Make() {
  auto pool = MakeFixedPool();
  if (!pool.ok()) return pool.status();
  auto control = server::ControlMemory::Create((*pool)->geometry());
  if (!control.ok()) return control.status();
  auto shard = std::make_unique<DirectShard>(*std::move(pool), *std::move(control));
  if (auto status = shard->Prepare(); !status.ok()) return status;
  return shard;
}

Status DirectShard::Prepare() {
  if (auto status = data_.TakeUp(); !status.ok()) return status;
  data_.BeginCleaning();
  // A shard counts its keys while it is idle, and this one is never idle.
  while (!data_.CountKeys()) {
  }
  return {};
}

std::optional<std::string> DirectShard::Get(std::string_view key) {
  server::Versions& versions = data_.versions();
  const uint64_t hash = HashOf(key);
  const server::Found found = server::FindKey(versions.part().index(), versions.log(), key, hash);
  if (!found.entry) return std::nullopt;
  const format::LogAddress address = versions.index().WordAt(*found.entry).new_address();
  const format::ObjectView view = versions.log().Inspect(pool_->geometry().HeadOf(hash), address);
  if (view.state != format::ObjectState::kWhole) return std::nullopt;
  return std::string(AsString(view.value));
}

}  // namespace erda::micro

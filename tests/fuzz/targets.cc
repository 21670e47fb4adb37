#include "fuzz/targets.h"

#include <map>
#include <string>

#include "base/bytes.h"
#include "fuzz/check.h"
#include "fuzz/input.h"
#include "inspect/inspection.h"
#include "inspect/salvage.h"
#include "server/readers.h"

namespace erda::fuzz {

namespace {

void CheckGets(const PoolServer& server, bool forged) {
  for (int i = 0; i < kKeys + 2; ++i) {
    const std::string key = KeyAt(i);
    const std::string value = server.Get(key);
    const bool may_be = value == server::kAbsent || value == server::kDamaged || value.starts_with(key + "#");
    Check(may_be || forged, "a get returns what was never put", value);
  }
}

void Serve(PoolServer* server, uint8_t todo, bool forged) {
  CheckGets(*server, forged);
  for (int i = 0; i < kKeys + 2; ++i) {
    const std::string key = KeyAt(i);
    const std::string value = ValueOf(key, 20, 10 + static_cast<size_t>(todo) * 4);
    switch ((i + todo) % 5) {
      case 0:
        server->Put(key, value);
        break;
      case 1: {
        const auto reserved = server->Reserve(key, value, 2);
        if (reserved.code != Code::kOk) break;
        server->Land(reserved, value);
        if (i % 2 == 0) server->Commit(key, reserved, 2);
        break;
      }
      case 2:
        server->Delete(key);
        break;
      case 3: {
        const auto reserved = server->Reserve(key, value, 3);
        if (reserved.code == Code::kOk) server->Land(reserved, value, 7);
        server->Report(key);
        break;
      }
      default:
        server->Report(key);
    }
  }
  CheckGets(*server, forged);
  server->Sweep();
  server->EndSession(3);
  for (int i = 0; (todo & 0x10) != 0 && i < 60; ++i) server->Put("more" + std::to_string(i), std::string(700, 'm'));
  CheckGets(*server, forged);
}

}  // namespace

void OpenAndServe(std::span<const uint8_t> input) {
  const Input decoded = Decode(input);
  auto server = PoolServer::Open(decoded.image);
  if (!server.ok()) return;
  Serve(server->get(), decoded.todo, decoded.forged);
  for (const bool close : {(decoded.todo & 0x20) != 0, (decoded.todo & 0x40) != 0}) {
    if (close) (*server)->Close();
    server = PoolServer::Open((*server)->image());
    // If one thing is damaged, the pool opens again. Two damages are exceptions. A linked region that looks free, or
    // like a region of another owner, may be overwritten. And a damaged version limit may lie just below the highest
    // version.
    const bool may_be_refused =
        decoded.changes > 1 || decoded.other_table || server.status().message() == "the record of a shard is damaged";
    if (!server.ok() && may_be_refused) return;
    Check(server.ok(), "what was opened once is refused", server.status().ToString());
    CheckGets(**server, decoded.forged);
  }
}

void Inspect(std::span<const uint8_t> input) {
  const Input decoded = Decode(input);
  const auto report = inspect::InspectPool(std::as_bytes(std::span(decoded.image)), {(decoded.todo & 1) != 0, 10});
  if (!report.ok()) return;
  for (const inspect::ShardReport& shard : report->shards) {
    Check(shard.used_slots <= shard.index_slots && shard.object_bytes <= shard.log_bytes, "impossible sums");
  }
  Check(report->damage.size() <= 10 && report->damage.size() <= report->damage_count, "impossible damage");
}

void Salvage(std::span<const uint8_t> input) {
  const Input decoded = Decode(input);
  inspect::SalvageOptions options;
  options.newest = (decoded.todo & 1) != 0;
  options.older = (decoded.todo & 2) != 0;
  options.listed = 10;
  std::map<std::string, bool> named;
  std::string twice;
  std::map<std::string, std::string> values;
  const auto take = [&](const inspect::SalvagedValue& value) {
    const std::string key(value.key);
    // Superblocks hold the hash seed. Without it, a key counts once under each hash that a header gives it.
    twice = twice.empty() && !named.emplace(key, value.named).second ? key : twice;
    values[key] = AsString(value.value);
    const bool filler = key.starts_with("filler") && values[key] == "x";
    Check(values[key].starts_with(key + "#") || filler || decoded.forged, "salvage takes what was never put",
          values[key]);
    return Status();
  };
  const auto report = inspect::Salvage(std::as_bytes(std::span(decoded.image)), options, take);
  if (!report.ok()) return;
  if (report->source == inspect::FrameSource::kSuperblock) {
    Check(twice.empty(), "a key is taken twice", twice);
    Check(report->keys() == named.size(), "impossible sums");
  }
  Check(report->keys() >= named.size() && report->lost.size() <= 10, "impossible sums");
  if (decoded.changes != 0) return;
  const auto server = PoolServer::Open(decoded.image);
  Check(server.ok(), "a pool as it was made is refused");
  for (int i = 0; i < kKeys + 2; ++i) {
    const std::string key = KeyAt(i);
    const std::string value = (*server)->Get(key);
    const bool there = named.contains(key) && named[key];
    Check(there == (value != server::kAbsent), "salvage names other keys than gets find", key);
    Check(!there || values[key] == value, "salvage takes another value than gets read", key);
  }
}

}  // namespace erda::fuzz

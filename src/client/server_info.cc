#include "client/server_info.h"

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "client/link.h"
#include "format/activity.h"
#include "format/control_block.h"
#include "format/durability.h"

namespace erda::client {

namespace {

using InfoPairs = std::vector<std::pair<std::string, std::string>>;

void AddTimesTo(InfoPairs& info, const std::string& name, const LatencyHistogram& times) {
  if (times.count() == 0) return;
  for (const auto& [quantile, share] : {std::pair("p50", 0.5), {"p99", 0.99}, {"p999", 0.999}}) {
    info.emplace_back(name + "_" + quantile + "_ns", std::to_string(times.Quantile(share).count()));
  }
}

// Leaves out the numbers that are 0.
void AddActivityTo(InfoPairs& info, const Activity& activity) {
  for (const OperationStats& operation : activity.operations) {
    const std::string name = "requests_" + operation.kind;
    for (size_t i = 0; i < OperationStats::kOutcomes; ++i) {
      if (operation.outcomes[i] == 0) continue;
      info.emplace_back(name + "_" + OperationStats::OutcomeName(i), std::to_string(operation.outcomes[i]));
    }
    AddTimesTo(info, name, operation.time);
  }
  AddTimesTo(info, "persist", activity.persist);
  AddTimesTo(info, "hold", activity.hold);
  AddTimesTo(info, "clean_region", activity.clean_region);
  for (const FabricStats& fabric : activity.fabrics) {
    const std::string name = "fabric_" + fabric.scheme + (fabric.device.empty() ? "" : "_" + fabric.device) + "_";
    info.emplace_back(name + "connections", std::to_string(fabric.connections));
    info.emplace_back(name + "requests", std::to_string(fabric.requests));
    info.emplace_back(name + "refused", std::to_string(fabric.refused));
    info.emplace_back(name + "violations", std::to_string(fabric.violations));
  }
}

}  // namespace

Activity ActivityOf(const Connections& connections) {
  Activity activity;
  for (const auto& link : connections.links()) format::AddActivity(link->control().activity(), &activity);
  return activity;
}

std::vector<std::pair<std::string, std::string>> ServerInfoOf(const Connections& connections) {
  InfoPairs info;
  const Links& links = connections.links();
  const format::HelloReply& hello = links[0]->hello();
  const auto number = [&](const char* name, uint64_t n) { info.emplace_back(name, std::to_string(n)); };
  std::string uuid;
  for (const uint8_t byte : hello.pool_uuid) {
    constexpr char kDigits[] = "0123456789abcdef";
    uuid.push_back(kDigits[byte >> 4]);
    uuid.push_back(kDigits[byte & 15]);
  }
  info.emplace_back("pool_uuid", uuid);
  number("server_id", hello.server_id);
  info.emplace_back("durability", format::DurabilityName(static_cast<format::Durability>(hello.durability)));
  info.emplace_back("durability_means", format::DurabilityMeaning(static_cast<format::Durability>(hello.durability)));
  info.emplace_back("flush_method", format::FlushMethodName(links[0]->flush_method()));
  info.emplace_back("placing", format::PlacingName(links[0]->placing()));
  number("pool_bytes", hello.geometry.pool_size);
  number("shards", hello.geometry.shards);
  number("heads_per_shard", hello.geometry.heads_per_shard);
  number("region_bytes", hello.geometry.region_size);
  number("segment_bytes", hello.geometry.segment_size);
  number("inline_request_bytes", hello.slot_bytes);
  for (uint32_t i = 0; i < static_cast<uint32_t>(format::Counter::kCount); ++i) {
    uint64_t sum = 0;
    for (const auto& link : links) {
      const uint64_t at = offsetof(format::ControlBlock, counters) + i * sizeof(uint64_t);
      sum += LoadAs<uint64_t>(link->control().bytes().subspan(at));
    }
    number(format::kCounterNames[i], sum);
  }
  AddActivityTo(info, ActivityOf(connections));
  return info;
}

}  // namespace erda::client

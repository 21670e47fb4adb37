// The list of losses in the report of a salvage, as one shard adds to it. One thread uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "inspect/salvage.h"

namespace erda::inspect {

class SalvageLosses {
 public:
  // listed_max: the length at which the report's list ends. REQUIRES: the report outlives this object.
  SalvageLosses(uint32_t shard, size_t listed_max, SalvageReport* report)
      : shard_(shard), listed_max_(listed_max), report_(*report) {}

  // The counts of the report. Their owner counts a loss; Add only lists it.
  [[nodiscard]] SalvageReport& report() { return report_; }
  void Add(std::string what, std::optional<std::string_view> key, std::optional<uint64_t> offset) {
    if (report_.lost.size() >= listed_max_) return;
    SalvageReport::Lost lost;
    lost.shard = shard_;
    lost.what = std::move(what);
    if (key) lost.key = std::string(*key);
    lost.offset = offset;
    report_.lost.push_back(std::move(lost));
  }

 private:
  const uint32_t shard_;
  const size_t listed_max_;
  SalvageReport& report_;
};

}  // namespace erda::inspect

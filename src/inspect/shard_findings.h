// The findings of the inspection of one shard: its report, and its damage in the list of the pool's report. One thread
// uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "inspect/report.h"

namespace erda::inspect {

class ShardFindings {
 public:
  // listed_max: the length at which the pool's list of damage ends. REQUIRES: the pool's report outlives this object.
  ShardFindings(uint32_t shard, size_t listed_max, PoolReport* pool) : listed_max_(listed_max), pool_(*pool) {
    report_.shard = shard;
  }

  [[nodiscard]] ShardReport& report() { return report_; }
  // Returns whether the pool may have the traces of a crash, which recovery removes. They are no damage.
  [[nodiscard]] bool needs_recovery() const { return pool_.needs_recovery; }

  // Counts the damage, and lists it if the list has room.
  void Add(Damage damage) {
    ++pool_.damage_count;
    damage.shard = report_.shard;
    if (pool_.damage.size() < listed_max_) pool_.damage.push_back(std::move(damage));
  }
  void Add(std::string what) {
    Damage damage;
    damage.what = std::move(what);
    Add(std::move(damage));
  }

 private:
  const size_t listed_max_;
  PoolReport& pool_;
  ShardReport report_;
};

}  // namespace erda::inspect

// Finds the versions in a pool's bytes by the format alone, independently of the server. So a run knows which bytes to
// damage.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "format/geometry.h"
#include "format/index_entry.h"
#include "format/object.h"

namespace erda::sim {

class Medium {
 public:
  Medium(std::span<const std::byte> pool, const format::Geometry& geometry, uint32_t pool_seed)
      : pool_(pool), geometry_(geometry), pool_seed_(pool_seed) {}

  struct Version {
    uint64_t entry_at = 0;  // offsets in the pool
    uint64_t at = 0;
    uint64_t bytes = 0;
    uint32_t head = 0;
    format::ObjectView view;
  };
  // Returns the newest version of the key, if the entry says that it is settled.
  [[nodiscard]] std::optional<Version> SettledOf(std::string_view key) const;
  // Returns the version before this one, if it is whole.
  [[nodiscard]] std::optional<Version> Before(const Version& version) const;

 private:
  [[nodiscard]] std::optional<Version> VersionAt(uint32_t head, format::LogAddress address) const;

  std::span<const std::byte> pool_;
  const format::Geometry& geometry_;
  const uint32_t pool_seed_;
};

}  // namespace erda::sim

// Finds the object that an index entry names as its new version, on another thread than the shard's. Uses the head
// slots in the control block, as clients do. Owns nothing. The cleaner's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "format/control_block.h"
#include "format/geometry.h"
#include "format/object.h"
#include "nvm/writer.h"

namespace erda::server {

// The object that an entry named when Find looked it up.
struct NamedObject {
  format::Place place;
  std::span<const std::byte> bytes;  // From the place to the end of its segment.
  uint64_t* slot_word = nullptr;     // The head slot of its region.
  format::HeadSlot slot;             // The contents of slot_word at that time.
  // Returns true if the head slot still holds that region. Otherwise the bytes may belong to another object now.
  [[nodiscard]] bool IsStillLinked() const;
};

class NamedObjects {
 public:
  // control: the shard's control block.
  NamedObjects(const nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard,
               std::span<std::byte> control)
      : nvm_(nvm), geometry_(geometry), pool_seed_(pool_seed), shard_(shard), control_(control) {}

  // Returns nothing if the entry's head slot holds no region, or if no such slot exists.
  [[nodiscard]] std::optional<NamedObject> Find(const format::IndexEntry& entry) const;
  [[nodiscard]] uint32_t HeadOf(const format::IndexEntry& entry) const {
    return geometry_.HeadOf(entry.entry_meta().tag());
  }

 private:
  const nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const uint32_t pool_seed_;
  const uint32_t shard_;
  const std::span<std::byte> control_;
};

}  // namespace erda::server

// The place of an object in the log of a head: 31 bits.
//
//   bit 30       24 23                    0
//   +-------------+------------------------+
//   | slot (7)    | granule (24)           |    0 means none
//   +-------------+------------------------+
//
// A head has 128 slots in its addresses, of 256 MiB each. A granule is 16 bytes of a slot. A slot holds one region. In
// a pool that was grown it may hold several, one after the other (Geometry::SlotOf). Granule 0 of a region belongs to a
// segment's header, so no object is ever at address 0.
#pragma once

#include <compare>
#include <cstdint>

namespace erda::format {

inline constexpr uint64_t kGranuleBytes = 16;
inline constexpr uint32_t kSlotsPerHead = 128;
inline constexpr uint32_t kGranuleBits = 24;
inline constexpr uint32_t kAddressBits = 31;
inline constexpr uint64_t kRegionBytesMax = kGranuleBytes << kGranuleBits;  // 256 MiB

class LogAddress {
 public:
  constexpr LogAddress() = default;
  explicit constexpr LogAddress(uint32_t raw) : raw_(raw & kMask) {}
  // REQUIRES: slot < 128, offset < 256 MiB and a multiple of 16.
  static constexpr LogAddress At(uint32_t slot, uint64_t offset_in_slot) {
    return LogAddress((slot << kGranuleBits) | static_cast<uint32_t>(offset_in_slot / kGranuleBytes));
  }

  [[nodiscard]] constexpr bool none() const { return raw_ == 0; }
  [[nodiscard]] constexpr uint32_t raw() const { return raw_; }
  [[nodiscard]] constexpr uint32_t slot() const { return raw_ >> kGranuleBits; }
  [[nodiscard]] constexpr uint64_t offset_in_slot() const {
    return uint64_t{raw_ & ((1U << kGranuleBits) - 1)} * kGranuleBytes;
  }
  constexpr bool operator==(const LogAddress&) const = default;

 private:
  static constexpr uint32_t kMask = (1U << kAddressBits) - 1;
  uint32_t raw_ = 0;
};

inline constexpr LogAddress kNoAddress{};

static_assert(kSlotsPerHead << kGranuleBits == 1U << kAddressBits);
static_assert(LogAddress::At(127, kRegionBytesMax - 16).slot() == 127);
static_assert(LogAddress::At(127, kRegionBytesMax - 16).offset_in_slot() == kRegionBytesMax - 16);

}  // namespace erda::format

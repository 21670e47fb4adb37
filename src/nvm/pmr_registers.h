// The registers of an NVMe controller that are about its persistent memory region (NVM Express Base Specification 1.4,
// section 3.1). All are in the first 4 KiB of the controller's PCI resource 0.
#pragma once

#include <cstdint>

namespace erda::nvm::pmr {

inline constexpr uint64_t kRegisterBytes = 4096;

// Offsets of the registers. Each has 4 bytes; kCapHigh is the upper half of CAP.
inline constexpr uint64_t kCapHigh = 0x4;
inline constexpr uint64_t kPmrCap = 0xE00;
inline constexpr uint64_t kPmrCtl = 0xE04;
inline constexpr uint64_t kPmrSts = 0xE08;

inline constexpr uint32_t kCapHighPmrs = 1U << 24;  // The controller has a region.

inline constexpr uint32_t kPmrCtlEn = 1;  // The region answers to reads and writes.

// Returns the number of the PCI resource that is the region.
constexpr uint32_t ResourceOf(uint32_t pmrcap) { return pmrcap >> 5 & 7; }
// Returns true if a read of the region makes earlier writes persistent.
constexpr bool RegionReadPersists(uint32_t pmrcap) { return (pmrcap >> 10 & 1) != 0; }
// Returns true if a read of PMRSTS makes earlier writes persistent.
constexpr bool StatusReadPersists(uint32_t pmrcap) { return (pmrcap >> 10 & 2) != 0; }
// Returns the time that the region may take to become ready.
constexpr uint64_t ReadyMilliseconds(uint32_t pmrcap) {
  return (pmrcap >> 16 & 0xFF) * ((pmrcap >> 8 & 3) == 0 ? 500ULL : 60'000ULL);
}

constexpr bool IsReady(uint32_t pmrsts) { return (pmrsts >> 8 & 1) == 0; }
// Returns 0 if the region works, or what is wrong: 1 its bytes were not restored, 2 it is read-only, 3 it is
// unreliable. A device that is gone reads as ones, which gives 7.
constexpr uint32_t HealthOf(uint32_t pmrsts) { return pmrsts >> 9 & 7; }
// Returns 0, or the error of the last write that failed.
constexpr uint32_t ErrorOf(uint32_t pmrsts) { return pmrsts & 0xFF; }
constexpr bool Works(uint32_t pmrsts) { return IsReady(pmrsts) && HealthOf(pmrsts) == 0 && ErrorOf(pmrsts) == 0; }

}  // namespace erda::nvm::pmr

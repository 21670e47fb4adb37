// The messages of two ends before the caller may use their verbs channel.
//
// The connecting end's private data of rdma_cm is a Knock and the caller's bytes. A refusal has the same form. When the
// queue pair is up, each end sends one Greeting, the connecting end first. It says what the end offers, and where it
// counts consumed messages.
//
//   Knock     0        4         5      6
//             +--------+---------+------+-------+----------------+
//             | "ErVb" | version | data | depth | data ...        |
//             +--------+---------+------+-------+----------------+
//   Greeting  0        4         5         6      8      16     24                        216
//             +--------+---------+---------+------+------+------+--------------------------+-----------+
//             | "ErVb" | version | regions | data | credit page  | 8 regions of 24 bytes    | data, 196 |
//             +--------+---------+---------+------+------+------+--------------------------+-----------+
//
// Each end offers one page of counters, the CreditPage. `consumed` counts the messages that the end has consumed; a
// peer without room reads it. Into `told` the peer writes its count unasked.
//
// The functions have no state, so any thread may call them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "erda/status.h"
#include "fabric/fabric.h"

namespace erda::fabric::verbs {

inline constexpr uint32_t kMagic = 0x62567245;  // "ErVb".
inline constexpr uint8_t kVersion = 1;

struct Knock {
  uint32_t magic = kMagic;
  uint8_t version = kVersion;
  uint8_t data_bytes = 0;
  uint16_t message_depth = 0;  // Of the connecting end; 0 in a refusal.
};
static_assert(sizeof(Knock) == 8);

struct OfferedRegion {
  uint64_t address = 0;
  uint64_t size = 0;
  uint32_t key = 0;
  uint32_t access = 0;  // An Access.
};
static_assert(sizeof(OfferedRegion) == 24);

struct Greeting {
  uint32_t magic = kMagic;
  uint8_t version = kVersion;
  uint8_t regions = 0;
  uint16_t data_bytes = 0;
  uint64_t credit_address = 0;
  uint32_t credit_key = 0;
  uint32_t reserved = 0;
  std::array<OfferedRegion, kOfferedRegionsMax> region{};
  std::array<std::byte, kAcceptDataMax> data{};
  uint32_t end = 0;
};
static_assert(sizeof(Greeting) == 416);
static_assert(offsetof(Greeting, region) == 24 && offsetof(Greeting, data) == 216);

struct CreditPage {
  alignas(64) uint64_t consumed = 0;  // Counted by this end, and read by the peer.
  alignas(64) uint64_t told = 0;      // Written by the peer: the count of messages that it has consumed.
  alignas(64) uint64_t asked = 0;     // This end's Read of the peer's count lands here.
};
static_assert(sizeof(CreditPage) == 192);

// Every receive has room for the longest possible message.
inline constexpr size_t kReceiveBytes = 448;
static_assert(kReceiveBytes >= sizeof(Greeting) && kReceiveBytes >= kSendBytesMax);

// Returns the bytes of the first step of connecting: a Knock and the caller's data. Returns an empty vector if the data
// is too long.
std::vector<std::byte> MakeKnock(std::span<const std::byte> data, size_t data_max, uint32_t message_depth);
// Reads a Knock and the caller's data. Returns false if the bytes are not that.
bool ReadKnock(const void* bytes, size_t size, Knock* knock, std::vector<std::byte>* data);

// Makes the first message of an end. REQUIRES: at most kOfferedRegionsMax regions and kAcceptDataMax bytes of data.
Greeting MakeGreeting(std::span<const OfferedRegion> regions, std::span<const std::byte> data, uint64_t credit_address,
                      uint32_t credit_key);
// Reads the peer's first message. Returns kUnavailable with the reason if it is no valid Greeting. Every number in a
// returned Greeting is in bounds. But addresses and keys of the regions are the peer's claims.
Result<Greeting> ReadGreeting(std::span<const std::byte> bytes);

}  // namespace erda::fabric::verbs

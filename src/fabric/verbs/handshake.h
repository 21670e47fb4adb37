// What two ends of a verbs channel say to each other before the channel is theirs to use.
//
// The asking end's private data of rdma_cm is a Knock and the caller's bytes, a refusal's the same. When the queue pair
// is up, each end sends one Greeting, the asking end first: what it offers, and where it counts what it has consumed.
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
// Each end offers one page of counters, the CreditPage: `consumed` counts the messages that it has consumed, for the
// peer to read when it has run out of room; `told` is where the peer writes its own count unasked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "erda/status.h"
#include "fabric/fabric.h"

namespace erda::fabric::verbs {

inline constexpr uint32_t kMagic = 0x62567245;  // "ErVb"
inline constexpr uint8_t kVersion = 1;

struct Knock {
  uint32_t magic = kMagic;
  uint8_t version = kVersion;
  uint8_t data_bytes = 0;
  uint16_t message_depth = 0;  // of the asking end; 0 in a refusal
};
static_assert(sizeof(Knock) == 8);

struct OfferedRegion {
  uint64_t address = 0;
  uint64_t size = 0;
  uint32_t key = 0;
  uint32_t access = 0;  // an Access
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
  alignas(64) uint64_t consumed = 0;  // by this end; the peer reads it
  alignas(64) uint64_t told = 0;      // by the peer, of what it has consumed
  alignas(64) uint64_t asked = 0;     // where this end's Read of the peer's count lands
};
static_assert(sizeof(CreditPage) == 192);

// Every receive has room for the longest that may come.
inline constexpr size_t kReceiveBytes = 448;
static_assert(kReceiveBytes >= sizeof(Greeting) && kReceiveBytes >= kSendBytesMax);

// The first step of connecting, as bytes: a Knock and the caller's data. Empty if the data is too long.
std::vector<std::byte> MakeKnock(std::span<const std::byte> data, size_t data_max, uint32_t message_depth);
// The caller's data of a Knock. False if that is not what it is.
bool ReadKnock(const void* bytes, size_t size, Knock* knock, std::vector<std::byte>* data);

// What the peer says first. kUnavailable and why, if that is no Greeting: nothing in one that is taken is out of
// bounds, but the regions are where and what the peer says.
Result<Greeting> ReadGreeting(std::span<const std::byte> bytes);

}  // namespace erda::fabric::verbs

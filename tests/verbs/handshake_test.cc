// The first messages of two ends, as bytes, and the refused ones.
#include "fabric/verbs/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace erda::fabric::verbs {
namespace {

TEST(VerbsKnock, KnockReturnsItsDataAndNoMore) {
  const std::string data = "hello";
  auto bytes = MakeKnock(AsBytes(data), kConnectDataMax, 64);
  ASSERT_EQ(bytes.size(), sizeof(Knock) + data.size());
  bytes.resize(56);  // As rdma_cm pads it.
  Knock knock;
  std::vector<std::byte> read;
  ASSERT_TRUE(ReadKnock(bytes.data(), bytes.size(), &knock, &read));
  EXPECT_EQ(AsString(read), data);
  EXPECT_EQ(knock.message_depth, 64);
  EXPECT_TRUE(MakeKnock(std::vector<std::byte>(kConnectDataMax + 1), kConnectDataMax, 1).empty());
}

// The limit of rdma_cm.
TEST(VerbsKnock, KnockFitsIntoRdmaCmsPrivateData) {
  EXPECT_LE(sizeof(Knock) + kConnectDataMax, 56U);
  EXPECT_LE(sizeof(Knock) + kRejectDataMax, 148U);
}

TEST(VerbsKnock, OtherBytesAreRefused) {
  const auto good = MakeKnock({}, kConnectDataMax, 1);
  Knock knock;
  std::vector<std::byte> data;
  EXPECT_FALSE(ReadKnock(nullptr, 0, &knock, &data));
  EXPECT_FALSE(ReadKnock(good.data(), good.size() - 1, &knock, &data));
  for (const size_t at : {0U, 1U, 2U, 3U, 4U}) {  // The magic and the version.
    auto bad = good;
    bad[at] ^= std::byte{1};
    EXPECT_FALSE(ReadKnock(bad.data(), bad.size(), &knock, &data)) << at;
  }
  auto longer = good;
  longer[offsetof(Knock, data_bytes)] = std::byte{1};
  EXPECT_FALSE(ReadKnock(longer.data(), longer.size(), &knock, &data)) << "more data than there is";
}

// As full as possible. The data looks like regions, too, so that only their number says where they end.
Greeting FullGreeting() {
  const OfferedRegion region{4096, 4096, 7, static_cast<uint32_t>(Access::kRemoteRead)};
  Greeting greeting;
  greeting.regions = kOfferedRegionsMax;
  greeting.region.fill(region);
  greeting.data_bytes = kAcceptDataMax;
  const auto bytes = BytesOf(region);
  for (size_t at = 0; at + bytes.size() <= greeting.data.size(); at += bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), greeting.data.begin() + static_cast<ptrdiff_t>(at));
  }
  return greeting;
}

TEST(VerbsGreeting, GreetingReturnsItsRegions) {
  for (size_t regions = 0; regions <= kOfferedRegionsMax; ++regions) {
    Greeting greeting = FullGreeting();
    greeting.regions = static_cast<uint8_t>(regions);
    const auto read = ReadGreeting(BytesOf(greeting));
    ASSERT_TRUE(read.ok()) << regions << ": " << read.status().ToString();
    EXPECT_EQ(read->regions, regions);
    EXPECT_EQ(read->data_bytes, kAcceptDataMax);
  }
}

TEST(VerbsGreeting, MadeGreetingIsRead) {
  const std::vector<OfferedRegion> regions(3, OfferedRegion{1, 2, 3, static_cast<uint32_t>(Access::kRemoteReadWrite)});
  const std::string data = "pool";
  const Greeting greeting = MakeGreeting(regions, AsBytes(data), 77, 88);
  const auto read = ReadGreeting(BytesOf(greeting));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->regions, 3U);
  EXPECT_EQ(read->region[2].key, 3U);
  EXPECT_EQ(AsString(std::span(read->data).first(read->data_bytes)), data);
  EXPECT_EQ(read->credit_address, 77U);
  EXPECT_EQ(read->credit_key, 88U);
  const std::vector<OfferedRegion> most(kOfferedRegionsMax, regions[0]);
  const std::vector<std::byte> longest(kAcceptDataMax);
  EXPECT_TRUE(ReadGreeting(BytesOf(MakeGreeting(most, longest, 0, 0))).ok());
}

TEST(VerbsGreeting, InvalidGreetingIsRefused) {
  const std::vector<std::pair<std::string, void (*)(Greeting&)>> wrong = {
      {"another magic", [](Greeting& greeting) { ++greeting.magic; }},
      {"another version", [](Greeting& greeting) { ++greeting.version; }},
      {"a region more than there can be", [](Greeting& greeting) { greeting.regions = kOfferedRegionsMax + 1; }},
      {"two more", [](Greeting& greeting) { greeting.regions = kOfferedRegionsMax + 2; }},
      {"as many as the byte can say", [](Greeting& greeting) { greeting.regions = UINT8_MAX; }},
      {"more data than there can be", [](Greeting& greeting) { greeting.data_bytes = kAcceptDataMax + 1; }},
      {"much more", [](Greeting& greeting) { greeting.data_bytes = UINT16_MAX; }},
      {"local memory", [](Greeting& greeting) { greeting.region.back().access = 0; }},
      {"an access that is none", [](Greeting& greeting) { greeting.region.front().access = 3; }},
      {"an access beyond its byte", [](Greeting& greeting) { greeting.region.front().access = 0x101; }},
  };
  for (const auto& [what, change] : wrong) {
    Greeting greeting = FullGreeting();
    change(greeting);
    const auto read = ReadGreeting(BytesOf(greeting));
    EXPECT_EQ(CodeName(read.status().code()), CodeName(Code::kUnavailable)) << what;
  }
}

TEST(VerbsGreeting, GreetingOfAnotherLengthIsRefused) {
  const Greeting greeting = FullGreeting();
  std::vector<std::byte> bytes(sizeof(greeting) + 1);
  std::copy_n(BytesOf(greeting).begin(), sizeof(greeting), bytes.begin());
  EXPECT_TRUE(ReadGreeting(std::span(bytes).first(sizeof(greeting))).ok());
  for (const size_t size : {size_t{0}, sizeof(Knock), sizeof(greeting) - 1, sizeof(greeting) + 1}) {
    EXPECT_FALSE(ReadGreeting(std::span(bytes).first(size)).ok()) << size;
  }
}

}  // namespace
}  // namespace erda::fabric::verbs

// The part of one end in the exchange that connects a channel.
#include "fabric/verbs/introduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "verbs/fixture.h"

namespace erda::fabric::verbs {
namespace {

class IntroductionTest : public DeviceTest {
 protected:
  void SetUp() override { Open(); }
  static Greeting GreetingOf(const Request& request) {
    const auto greeting = ReadGreeting(request.work.local);
    EXPECT_TRUE(greeting.ok()) << greeting.status().ToString();
    return greeting.ok() ? *greeting : Greeting();
  }
};

TEST_F(IntroductionTest, GreetingOffersTheRegions) {
  const auto whole = Register(0, 4096, Access::kRemoteReadWindows);
  const auto half = Register(0, 2048, Access::kRemoteReadWrite);
  Region* const offer[] = {whole.get(), half.get()};
  Introduction introduction;
  ASSERT_TRUE(introduction.Prepare(*device_, {nullptr, offer, {}}).ok());
  const Greeting greeting = GreetingOf(introduction.Greet(true));
  ASSERT_EQ(greeting.regions, 2U);
  EXPECT_EQ(greeting.region[0].address, reinterpret_cast<uint64_t>(memory_.data()));
  EXPECT_EQ(greeting.region[0].size, 4096U);
  EXPECT_EQ(greeting.region[0].key, whole->mr()->rkey);
  EXPECT_EQ(greeting.region[0].access, static_cast<uint32_t>(Access::kRemoteRead)) << "the peer reads all of it";
  EXPECT_EQ(greeting.region[1].size, 2048U);
  EXPECT_EQ(greeting.region[1].access, static_cast<uint32_t>(Access::kRemoteReadWrite));
}

TEST_F(IntroductionTest, GreetingNamesTheCreditPage) {
  Introduction introduction;
  ASSERT_TRUE(introduction.Prepare(*device_, {}).ok());
  const Request request = introduction.Greet(true);
  EXPECT_EQ(request.purpose, Purpose::kGreet);
  EXPECT_EQ(request.work.kind, OpKind::kSend);
  const Greeting greeting = GreetingOf(request);
  EXPECT_EQ(greeting.credit_address, reinterpret_cast<uint64_t>(&introduction.credit_page()));
  EXPECT_NE(greeting.credit_key, 0U);
  EXPECT_NE(greeting.credit_key, introduction.credit_key()) << "that is the key of local bytes";
  EXPECT_EQ(introduction.credit_page().consumed, 0U);
}

TEST_F(IntroductionTest, GreetingHasTheDataIfTheKnockHadNone) {
  const std::string data = "data of the caller";
  for (const bool with_data : {false, true}) {
    Introduction introduction;
    ASSERT_TRUE(introduction.Prepare(*device_, {nullptr, {}, AsBytes(data)}).ok());
    EXPECT_EQ(AsString(introduction.data()), data);
    const Greeting greeting = GreetingOf(introduction.Greet(with_data));
    EXPECT_EQ(AsString(std::span(greeting.data).first(greeting.data_bytes)), with_data ? data : "");
  }
}

TEST_F(IntroductionTest, OfferWithoutRightsIsRefused) {
  const auto check = [&](Region* region) {
    Region* const offer[] = {region};
    return Introduction::Check(*device_, {nullptr, offer, {}}, 10).code();
  };
  for (const Access access : {Access::kRemoteRead, Access::kRemoteReadWrite, Access::kRemoteReadWindows}) {
    EXPECT_EQ(check(Register(0, 8, access).get()), Code::kOk);
  }
  EXPECT_EQ(check(Register(0, 8, Access::kLocal).get()), Code::kInvalidArgument);
  EXPECT_EQ(check(nullptr), Code::kInvalidArgument);
  auto other = Device::WithOtherDomain(device_);
  ASSERT_TRUE(other.ok());
  const auto region = Register(0, 8, Access::kRemoteRead);
  Region* const offer[] = {region.get()};
  EXPECT_EQ(Introduction::Check(**other, {nullptr, offer, {}}, 10).code(), Code::kInvalidArgument);
}

TEST_F(IntroductionTest, OfferAndDataHaveLimits) {
  const auto region = Register(0, 8, Access::kRemoteRead);
  const std::vector<Region*> offer(kOfferedRegionsMax + 1, region.get());
  const std::vector<std::byte> data(11);
  const auto check = [&](size_t regions, size_t bytes) {
    return Introduction::Check(*device_, {nullptr, std::span(offer).first(regions), std::span(data).first(bytes)}, 10)
        .code();
  };
  EXPECT_EQ(check(kOfferedRegionsMax, 10), Code::kOk);
  EXPECT_EQ(check(kOfferedRegionsMax + 1, 10), Code::kInvalidArgument);
  EXPECT_EQ(check(kOfferedRegionsMax, 11), Code::kInvalidArgument);
}

TEST_F(IntroductionTest, IntroductionNeedsMemory) {
  rdma_.register_error = ENOMEM;
  Introduction introduction;
  EXPECT_EQ(introduction.Prepare(*device_, {}).code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace erda::fabric::verbs

// Puts: the results of gets between publication and settling, and the version that the entry keeps as the old one.
#include <gtest/gtest.h>

#include "server/store.h"

namespace erda::server {
namespace {

using format::EntryWord;
using format::FlushMethod;

class PublishTest : public testing::TestWithParam<FlushMethod> {
 protected:
  static StoreOptions Options() {
    StoreOptions options;
    options.flush = GetParam();
    return options;
  }
  // Returns the result of a get for a kPersisted value that arrived and is not settled. With server flush, its put is
  // not acknowledged yet.
  static std::string Unsettled(std::string_view newer, std::string_view older) {
    return std::string(GetParam() == FlushMethod::kServerFlush ? older : newer);
  }
  Store store_{Options()};
};
INSTANTIATE_TEST_SUITE_P(Flush, PublishTest, EveryFlushMethod(), FlushMethodName);

TEST_P(PublishTest, AnInlinePutIsSettledWhenItIsAnswered) {
  for (const Ack ack : {Ack::kPlaced, Ack::kPersisted}) {
    ASSERT_EQ(store_.Inline("k", "v1", ack).code, Code::kOk);
    EXPECT_TRUE(store_.WordOf("k").settled());
    EXPECT_EQ(store_.Get("k"), "v1");
  }
  EXPECT_EQ(store_.versions().in_flight(), 0U);
}

TEST_P(PublishTest, AnInlinePutReplacesTheValueAndKeepsItAsTheOldOne) {
  const Outcome first = store_.Inline("k", "v1");
  const Outcome second = store_.Inline("k", "v2");
  EXPECT_EQ(store_.Get("k"), "v2");
  EXPECT_EQ(store_.WordOf("k").new_address(), second.address);
  EXPECT_EQ(store_.WordOf("k").old_address(), first.address);
  EXPECT_EQ(store_.versions().index().census().used(), 1U);
}

TEST_P(PublishTest, TheValueIsEmptyOrAsLargeAsASegmentHolds) {
  const std::string large(format::ValueBytesMax(store_.geometry(), 1), 'x');
  ASSERT_EQ(store_.Inline("k", "").code, Code::kOk);
  EXPECT_EQ(store_.Get("k"), "");
  ASSERT_EQ(store_.Inline("k", large).code, Code::kOk);
  EXPECT_EQ(store_.Get("k"), large);
  const Reserved reserved = store_.Reserve("k", "");
  store_.Land(reserved);
  store_.Sweep();
  EXPECT_EQ(store_.Get("k"), "");
}

TEST_P(PublishTest, KeyOfTheLargestSizeIsStoredOnEveryPath) {
  const std::string key(format::kKeyBytesMax, 'k');
  store_.Inline(key, "v1");
  store_.Land(store_.Reserve(key, "v2"));
  store_.Sweep();
  EXPECT_EQ(store_.Get(key), "v2");
  EXPECT_EQ(store_.Delete(key), Code::kOk);
  EXPECT_EQ(store_.Get(key), kAbsent);
}

TEST_P(PublishTest, AReservedPutIsNotSeenBeforeItArrives) {
  const Reserved reserved = store_.Reserve("k", "v1");
  EXPECT_EQ(store_.Get("k"), kAbsent);
  store_.LandPart(reserved, 4);  // the checksum alone
  EXPECT_EQ(store_.Get("k"), kAbsent);
  store_.Land(reserved);
  EXPECT_EQ(store_.Get("k"), Unsettled("v1", kAbsent));
  store_.Sweep();
  EXPECT_EQ(store_.Get("k"), "v1");
}

TEST_P(PublishTest, APlacedPutIsSeenAsSoonAsItArrives) {
  store_.Inline("k", "v1");
  const Reserved reserved = store_.Reserve("k", "v2", 0, Ack::kPlaced);
  EXPECT_EQ(store_.Get("k"), "v1");
  store_.Land(reserved);
  EXPECT_EQ(store_.Get("k"), "v2");
  EXPECT_FALSE(store_.WordOf("k").settled());
}

TEST_P(PublishTest, ASettledVersionBecomesTheOldOne) {
  const Outcome first = store_.Inline("k", "v1");
  const EntryWord before = store_.WordOf("k");
  const Reserved reserved = store_.Reserve("k", "v2");
  const EntryWord after = store_.WordOf("k");
  EXPECT_EQ(after.old_address(), first.address);
  EXPECT_EQ(after.new_address(), reserved.outcome.address);
  EXPECT_NE(after.new_tag(), before.new_tag());
  EXPECT_FALSE(after.settled());
  EXPECT_EQ(store_.Get("k"), "v1");
}

// The paper's flip would make the missing version the old one, and lose the last whole one.
TEST_P(PublishTest, ReplacedUnsettledVersionKeepsTheOldOne) {
  const Outcome first = store_.Inline("k", "v1");
  const Reserved second = store_.Reserve("k", "v2");
  const bool tag = store_.WordOf("k").new_tag();
  const Reserved third = store_.Reserve("k", "v3");
  EXPECT_EQ(store_.WordOf("k").old_address(), first.address);
  EXPECT_EQ(store_.WordOf("k").new_address(), third.outcome.address);
  EXPECT_EQ(store_.WordOf("k").new_tag(), tag);
  EXPECT_EQ(third.outcome.header.previous, second.outcome.address.raw());
  EXPECT_EQ(store_.Get("k"), "v1");
}

TEST_P(PublishTest, AWholeVersionIsSettledBeforeTheNextIsPublished) {
  const Reserved first = store_.Reserve("k", "v1");
  store_.Land(first);
  store_.Reserve("k", "v2");
  EXPECT_EQ(store_.WordOf("k").old_address(), first.outcome.address);
  EXPECT_EQ(store_.Get("k"), "v1");
}

TEST_P(PublishTest, InlinePutOverPutsInFlightStaysTheNewest) {
  const Reserved first = store_.Reserve("k", "v1", 0, Ack::kPlaced);
  const Reserved second = store_.Reserve("k", "v2", 1, Ack::kPlaced);
  store_.Inline("k", "v3");
  store_.Land(second);
  EXPECT_EQ(store_.Get("k"), "v3");
  store_.Land(first);
  store_.Sweep();
  EXPECT_EQ(store_.Get("k"), "v3");
  EXPECT_EQ(store_.WordOf("k").old_address(), second.outcome.address);
}

TEST_P(PublishTest, AVersionBetweenTheNewOneAndTheOldOneIsFoundByTheChain) {
  store_.Inline("k", "v1");
  const Reserved second = store_.Reserve("k", "v2", 0, Ack::kPlaced);
  store_.Reserve("k", "v3", 1, Ack::kPlaced);
  store_.Reserve("k", "v4", 2, Ack::kPlaced);
  EXPECT_EQ(store_.Get("k"), "v1");
  store_.Land(second);
  EXPECT_EQ(store_.Get("k"), "v2");
}

TEST_P(PublishTest, ManyPutsInFlightOfOneKeyArriveInAnyOrder) {
  std::vector<Reserved> reserved;
  for (int i = 0; i < 20; ++i) {
    reserved.push_back(store_.Reserve("k", std::to_string(i), static_cast<SessionId>(i), Ack::kPlaced));
  }
  store_.Land(reserved[7]);
  EXPECT_EQ(store_.Get("k"), "7");
  store_.Land(reserved[3]);
  EXPECT_EQ(store_.Get("k"), "7");
  store_.Land(reserved[19]);
  EXPECT_EQ(store_.Get("k"), "19");
  EXPECT_EQ(store_.Sweep(), 3U);
  EXPECT_EQ(store_.Get("k"), "19");
  EXPECT_EQ(store_.WordOf("k").old_address(), reserved[7].outcome.address);
}

TEST_P(PublishTest, VersionsGrow) {
  uint64_t last = 0;
  for (int i = 0; i < 10; ++i) {
    const uint64_t version = i % 2 == 0 ? store_.Inline("k", "v").header.version : store_.Reserve("k", "v").version();
    EXPECT_GT(version, last);
    last = version;
  }
}

TEST_P(PublishTest, KeysDoNotAffectEachOther) {
  for (int i = 0; i < 30; ++i) ASSERT_EQ(store_.Inline("key" + std::to_string(i), std::to_string(i)).code, Code::kOk);
  for (int i = 0; i < 30; i += 3) ASSERT_EQ(store_.Delete("key" + std::to_string(i)), Code::kOk);
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(store_.Get("key" + std::to_string(i)), i % 3 == 0 ? std::string(kAbsent) : std::to_string(i));
  }
  EXPECT_EQ(store_.versions().index().census().used(), 20U);
}

TEST_P(PublishTest, AReportOfAVersionInFlightChangesNothing) {
  store_.Inline("k", "v1");
  const Reserved reserved = store_.Reserve("k", "v2");
  const EntryWord word = store_.WordOf("k");
  store_.Report("k");
  store_.Report("another key");
  EXPECT_EQ(store_.WordOf("k"), word);
  store_.Land(reserved);
  store_.Report("k");  // the version has arrived, so the report settles it
  EXPECT_EQ(store_.Get("k"), "v2");
  EXPECT_TRUE(store_.WordOf("k").settled());
}

}  // namespace
}  // namespace erda::server

// The flush method of a session, and its effect on the session's puts.
#include "server/flush.h"

#include <gtest/gtest.h>

#include <array>

#include "server/store.h"

namespace erda::server {
namespace {

using format::Durability;
using format::FlushMethod;

constexpr std::array kChoices = {FlushChoice::kAuto, FlushChoice::kServerFlush, FlushChoice::kReadAfterWrite};

fabric::Capabilities CapabilitiesOf(bool nic_writes) {
  fabric::Capabilities capabilities;
  capabilities.nic_writes = nic_writes;
  return capabilities;
}

TEST(FlushTest, PoolThatIsNotPowerSafeNeedsNoFlushMethod) {
  for (const Durability durability : {Durability::kVolatile, Durability::kProcessSafe}) {
    for (const FlushChoice choice : kChoices) {
      for (const bool nic : {false, true}) {
        EXPECT_EQ(ChooseFlush(choice, durability, CapabilitiesOf(nic)), FlushMethod::kNone);
      }
    }
  }
}

TEST(FlushTest, APowerSafePoolIsAlwaysFlushed) {
  for (const FlushChoice choice : kChoices) {
    EXPECT_EQ(ChooseFlush(choice, Durability::kPowerSafe, CapabilitiesOf(false)), FlushMethod::kServerFlush)
        << "what a CPU wrote is flushed by a CPU, whatever was chosen";
  }
  const fabric::Capabilities nic = CapabilitiesOf(true);
  EXPECT_EQ(ChooseFlush(FlushChoice::kAuto, Durability::kPowerSafe, nic), FlushMethod::kServerFlush);
  EXPECT_EQ(ChooseFlush(FlushChoice::kServerFlush, Durability::kPowerSafe, nic), FlushMethod::kServerFlush);
  EXPECT_EQ(ChooseFlush(FlushChoice::kReadAfterWrite, Durability::kPowerSafe, nic), FlushMethod::kReadAfterWrite);
}

TEST(FlushTest, APoolWithMirrorsIsFlushedByItsServerOnEveryMedium) {
  for (const Durability durability : {Durability::kVolatile, Durability::kProcessSafe, Durability::kPowerSafe}) {
    for (const FlushChoice choice : kChoices) {
      for (const bool nic : {false, true}) {
        EXPECT_EQ(ChooseFlush(choice, durability, CapabilitiesOf(nic), true), FlushMethod::kServerFlush);
      }
    }
  }
}

TEST(FlushTest, HeaderTellsTheFlushMethodOfItsValue) {
  Store store;
  store.SetFlush(1, FlushMethod::kReadAfterWrite);
  store.SetFlush(2, FlushMethod::kNone);
  const auto flushed_by_read = [&](SessionId session, Ack ack) {
    return store.Reserve("k", "v", session, ack).outcome.header.flushed_by_read();
  };
  EXPECT_FALSE(flushed_by_read(0, Ack::kPersisted));
  EXPECT_TRUE(flushed_by_read(1, Ack::kPersisted));
  EXPECT_FALSE(flushed_by_read(1, Ack::kPlaced));
  EXPECT_FALSE(flushed_by_read(2, Ack::kPersisted));
  EXPECT_FALSE(store.Inline("k", "v").header.flushed_by_read()) << "what the server writes, it flushes";
}

// The value of each of two sessions with different methods counts, for all readers, as its writer's method says.
TEST(FlushTest, ReadersJudgeAVersionByItsWritersMethod) {
  Store store;
  store.SetFlush(1, FlushMethod::kReadAfterWrite);
  store.Inline("k", "old");
  const auto seen = [&] {
    const std::string by_server_flush = store.Get("k", FlushMethod::kServerFlush);
    EXPECT_EQ(store.Get("k", FlushMethod::kReadAfterWrite), by_server_flush);
    return by_server_flush;
  };
  const Reserved committed = store.Reserve("k", "committed", 0);
  store.Land(committed);
  EXPECT_EQ(seen(), "old") << "not acknowledged yet";
  EXPECT_EQ(store.Commit(committed), Code::kOk);
  EXPECT_EQ(seen(), "committed");
  const Reserved read_back = store.Reserve("k", "read back", 1);
  EXPECT_EQ(seen(), "committed");
  store.Land(read_back);
  EXPECT_EQ(seen(), "read back") << "it may be acknowledged";
  EXPECT_EQ(store.Commit(read_back), std::nullopt) << "nothing waits for a commit";
  const Reserved next = store.Reserve("k", "next", 0);
  EXPECT_EQ(seen(), "read back");
  store.Land(next);
  EXPECT_EQ(seen(), "read back");
}

}  // namespace
}  // namespace erda::server

#include "client/read_table.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

namespace erda::client {
namespace {

using format::FlushMethod;

constexpr std::array kFlushes = {FlushMethod::kNone, FlushMethod::kReadAfterWrite, FlushMethod::kServerFlush};
constexpr std::array kLooks = {EntryLook::kNotYet, EntryLook::kUnchanged, EntryLook::kChanged};

// A row names facts, and a fact that it leaves out may have any value. The rows exclude each other.
struct Row {
  std::optional<bool> whole, settled, persisted, tombstone, flushed_by_read;
  std::optional<FlushMethod> flush;
  std::optional<EntryLook> look;
  ReadStep step;

  [[nodiscard]] bool Matches(const ReadFacts& facts) const {
    return tombstone.value_or(facts.tombstone) == facts.tombstone &&
           flushed_by_read.value_or(facts.flushed_by_read) == facts.flushed_by_read &&
           whole.value_or(facts.whole) == facts.whole && settled.value_or(facts.settled) == facts.settled &&
           persisted.value_or(facts.persisted) == facts.persisted && flush.value_or(facts.flush) == facts.flush &&
           look.value_or(facts.look) == facts.look;
  }
};
constexpr std::nullopt_t any = std::nullopt;
constexpr std::array kTable = {
    Row{true, true, any, any, any, any, any, ReadStep::kReturn},
    Row{true, false, false, any, any, any, any, ReadStep::kReturn},
    Row{true, false, true, any, any, FlushMethod::kNone, any, ReadStep::kReturn},
    Row{true, false, true, any, true, FlushMethod::kReadAfterWrite, any, ReadStep::kReturn},
    Row{true, false, true, any, true, FlushMethod::kServerFlush, any, ReadStep::kReturn},
    Row{true, false, true, false, false, FlushMethod::kReadAfterWrite, any, ReadStep::kOlder},
    Row{true, false, true, false, false, FlushMethod::kServerFlush, any, ReadStep::kOlder},
    Row{true, false, true, true, false, FlushMethod::kReadAfterWrite, EntryLook::kNotYet, ReadStep::kLookAgain},
    Row{true, false, true, true, false, FlushMethod::kServerFlush, EntryLook::kNotYet, ReadStep::kLookAgain},
    Row{true, false, true, true, false, FlushMethod::kReadAfterWrite, EntryLook::kChanged, ReadStep::kRestart},
    Row{true, false, true, true, false, FlushMethod::kServerFlush, EntryLook::kChanged, ReadStep::kRestart},
    Row{true, false, true, true, false, FlushMethod::kReadAfterWrite, EntryLook::kUnchanged, ReadStep::kOlder},
    Row{true, false, true, true, false, FlushMethod::kServerFlush, EntryLook::kUnchanged, ReadStep::kOlder},
    Row{false, any, any, any, any, any, EntryLook::kNotYet, ReadStep::kLookAgain},
    Row{false, any, any, any, any, any, EntryLook::kChanged, ReadStep::kRestart},
    Row{false, false, any, any, any, any, EntryLook::kUnchanged, ReadStep::kOlderAndReport},
    Row{false, true, any, any, any, any, EntryLook::kUnchanged, ReadStep::kDamaged},
};

template <class Visit>
void ForAllFacts(Visit&& visit) {
  for (const bool whole : {false, true}) {
    for (const bool settled : {false, true}) {
      for (const bool persisted : {false, true}) {
        for (const bool tombstone : {false, true}) {
          for (const bool flushed_by_read : {false, true}) {
            for (const FlushMethod flush : kFlushes) {
              for (const EntryLook look : kLooks)
                visit(ReadFacts{whole, settled, persisted, tombstone, flushed_by_read, flush, look});
            }
          }
        }
      }
    }
  }
}

std::string Describe(const ReadFacts& facts) {
  return std::string(facts.whole ? "whole" : "not whole") + (facts.settled ? ", settled" : ", not settled") +
         (facts.persisted ? ", persisted" : ", placed") + (facts.tombstone ? ", a tombstone" : "") +
         (facts.flushed_by_read ? ", flushed by Reads" : "") + ", flush " +
         std::to_string(static_cast<int>(facts.flush)) + ", look " + std::to_string(static_cast<int>(facts.look));
}

TEST(ReadTableTest, EveryCombinationOfFactsIsDecidedAsTheTableSays) {
  int combinations = 0;
  ForAllFacts([&](const ReadFacts& facts) {
    ++combinations;
    int rows = 0;
    for (const Row& row : kTable) {
      if (!row.Matches(facts)) continue;
      ++rows;
      EXPECT_EQ(DecideRead(facts), row.step) << Describe(facts);
    }
    EXPECT_EQ(rows, 1) << Describe(facts);
  });
  EXPECT_EQ(combinations, 288);
}

TEST(ReadTableTest, OnlyWholeVersionsAreReturned) {
  ForAllFacts([](const ReadFacts& facts) {
    if (facts.whole) return;
    EXPECT_NE(DecideRead(facts), ReadStep::kReturn) << Describe(facts);
  });
}

TEST(ReadTableTest, ASettledVersionIsNeverPassedOver) {
  ForAllFacts([](const ReadFacts& facts) {
    if (!facts.settled) return;
    const ReadStep step = DecideRead(facts);
    EXPECT_TRUE(step != ReadStep::kOlder && step != ReadStep::kOlderAndReport) << Describe(facts);
  });
}

TEST(ReadTableTest, IncompleteVersionIsReadTwiceBeforeAVerdict) {
  ForAllFacts([](const ReadFacts& facts) {
    if (facts.whole || facts.look != EntryLook::kNotYet) return;
    EXPECT_EQ(DecideRead(facts), ReadStep::kLookAgain) << Describe(facts);
  });
}

}  // namespace
}  // namespace erda::client

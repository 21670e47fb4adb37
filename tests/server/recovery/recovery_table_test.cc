#include "server/recovery/recovery_table.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

namespace erda::server {
namespace {

using format::ObjectState;

// A row of the table. A fact without a value may be anything. The rows exclude each other.
struct Row {
  std::optional<ObjectState> newest;
  std::optional<bool> belongs, tombstone, in_its_slot, whole_before, old;
  RecoveryAction action;

  [[nodiscard]] bool Matches(const RecoveryFacts& facts) const {
    return newest.value_or(facts.newest) == facts.newest && belongs.value_or(facts.belongs) == facts.belongs &&
           tombstone.value_or(facts.tombstone) == facts.tombstone &&
           in_its_slot.value_or(facts.in_its_slot) == facts.in_its_slot &&
           whole_before.value_or(facts.whole_before) == facts.whole_before && old.value_or(facts.old) == facts.old;
  }
};
constexpr std::nullopt_t any = std::nullopt;
constexpr ObjectState kNothing = ObjectState::kNothing;
constexpr ObjectState kHeader = ObjectState::kHeader;
constexpr ObjectState kWhole = ObjectState::kWhole;
constexpr std::array kTable = {
    Row{kNothing, any, any, any, any, any, RecoveryAction::kDamaged},
    Row{kHeader, false, any, any, any, any, RecoveryAction::kDamaged},
    Row{kWhole, false, any, any, any, any, RecoveryAction::kDamaged},
    Row{kHeader, true, true, false, any, any, RecoveryAction::kDamaged},
    Row{kWhole, true, true, false, any, any, RecoveryAction::kDamaged},
    Row{kWhole, true, true, true, any, any, RecoveryAction::kEndDelete},
    Row{kHeader, true, true, true, any, any, RecoveryAction::kDamaged},
    Row{kHeader, true, false, true, any, any, RecoveryAction::kDamaged},
    Row{kWhole, true, false, true, any, any, RecoveryAction::kDamaged},
    Row{kWhole, true, false, false, any, any, RecoveryAction::kSettle},
    Row{kHeader, true, false, false, true, any, RecoveryAction::kGoBack},
    Row{kHeader, true, false, false, false, true, RecoveryAction::kGoBackToOld},
    Row{kHeader, true, false, false, false, false, RecoveryAction::kFree},
};

template <class Visit>
void ForAllFacts(Visit&& visit) {
  for (const ObjectState newest : {kNothing, kHeader, kWhole}) {
    for (unsigned bits = 0; bits < 32; ++bits) {
      visit(
          RecoveryFacts{newest, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0});
    }
  }
}

std::string Describe(const RecoveryFacts& facts) {
  return "state " + std::to_string(static_cast<int>(facts.newest)) + (facts.belongs ? ", belongs" : "") +
         (facts.tombstone ? ", a tombstone" : "") + (facts.in_its_slot ? ", in its slot" : "") +
         (facts.whole_before ? ", a whole one before" : "") + (facts.old ? ", an old one" : "");
}

TEST(RecoveryTableTest, DecidesEachCombinationOfFactsByTheTable) {
  int combinations = 0;
  ForAllFacts([&](const RecoveryFacts& facts) {
    ++combinations;
    int rows = 0;
    for (const Row& row : kTable) {
      if (!row.Matches(facts)) continue;
      ++rows;
      EXPECT_EQ(DecideRecovery(facts), row.action) << Describe(facts);
    }
    EXPECT_EQ(rows, 1) << Describe(facts);
  });
  EXPECT_EQ(combinations, 96);
}

// Recovery never settles a version that is not whole. It drops a value only for a tombstone that is whole and of the
// key.
TEST(RecoveryTableTest, TrustsOnlyWholeVersionsOfTheKey) {
  ForAllFacts([](const RecoveryFacts& facts) {
    const RecoveryAction action = DecideRecovery(facts);
    const bool good = facts.newest == kWhole && facts.belongs;
    if (action == RecoveryAction::kSettle) {
      EXPECT_TRUE(good && !facts.tombstone) << Describe(facts);
    }
    if (action == RecoveryAction::kEndDelete) {
      EXPECT_TRUE(good && facts.tombstone && facts.in_its_slot) << Describe(facts);
    }
    if (action == RecoveryAction::kFree) {
      EXPECT_FALSE(facts.old || facts.whole_before) << Describe(facts);
    }
  });
}

}  // namespace
}  // namespace erda::server

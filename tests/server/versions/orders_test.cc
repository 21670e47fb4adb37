// All orders of a few puts and deletes of one key. The test compares the store with the reference after each step.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "server/reference.h"
#include "server/store.h"

namespace erda::server {
namespace {

using format::FlushMethod;

// The end of a reserved put. Each put is reserved first.
enum class Fate { kLandAndCommit, kLandAndDie, kTornAndDie, kDieAtOnce };
constexpr std::array kFates = {Fate::kLandAndCommit, Fate::kLandAndDie, Fate::kTornAndDie, Fate::kDieAtOnce};

// A script is a word. Each letter is the next step of its actor. The letters a, b and c are reserved puts with three
// steps each. The letter i is an inline put, d is a delete, and s is a sweep.
struct Case {
  FlushMethod flush;
  std::array<Ack, 3> acks;
  std::array<Fate, 3> fates;
};

class Run {
 public:
  Run(const Case& c, std::string script) : case_(c), script_(std::move(script)), reference_(c.flush) {
    StoreOptions options;
    options.flush = c.flush;
    options.wish = {98304 + 4 * 4096, 1, 4096, 4096, 64};
    store_ = std::make_unique<Store>(options);
  }

  // Returns false at the first difference.
  bool Go() {
    for (size_t i = 0; i < script_.size(); ++i) {
      Step(script_[i]);
      if (testing::Test::HasFailure() || !Same()) {
        ADD_FAILURE() << "script " << script_ << ", step " << i << ", flush " << static_cast<int>(case_.flush)
                      << ", acks " << Numbers(case_.acks) << ", fates " << Numbers(case_.fates);
        return false;
      }
    }
    return true;
  }

 private:
  template <class T>
  static std::string Numbers(const std::array<T, 3>& values) {
    std::string numbers;
    for (const T value : values) numbers += std::to_string(static_cast<int>(value));
    return numbers;
  }

  void Step(char actor) {
    switch (actor) {
      case 'i':
        EXPECT_EQ(store_->Inline("k", "inline").code, Code::kOk);
        reference_.Inline("k", "inline", Ack::kPersisted);
        return;
      case 'd':
        EXPECT_EQ(store_->Delete("k"), reference_.Delete("k"));
        return;
      case 's':
        store_->Sweep();
        reference_.Sweep();
        return;
      default:
        PutStep(static_cast<size_t>(actor - 'a'));
    }
  }

  void PutStep(size_t i) {
    const auto session = static_cast<SessionId>(i);
    const Fate fate = case_.fates.at(i);
    switch (steps_.at(i)++) {
      case 0:
        reserved_.at(i) =
            store_->Reserve("k", std::string("value of ") + static_cast<char>('a' + i), session, case_.acks.at(i));
        handles_.at(i) = reference_.Reserve("k", reserved_.at(i).value, case_.acks.at(i), session);
        return;
      case 1:
        if (fate == Fate::kTornAndDie) store_->LandPart(reserved_.at(i), 9);
        if (fate == Fate::kTornAndDie || fate == Fate::kDieAtOnce) return;
        store_->Land(reserved_.at(i));
        reference_.Land(handles_.at(i));
        return;
      default:
        if (fate == Fate::kLandAndCommit) {
          EXPECT_EQ(store_->Commit(reserved_.at(i)), reference_.Commit(handles_.at(i)));
        } else {
          store_->EndSession(session);
          reference_.EndSession(session);
        }
    }
  }

  bool Same() {
    EXPECT_EQ(store_->Get("k"), reference_.Get("k"));
    EXPECT_EQ(store_->GetAfterCrash("k"), reference_.AfterCrash("k"));
    EXPECT_EQ(store_->Violation(), "");
    EXPECT_EQ(store_->versions().in_flight(), reference_.in_flight());
    EXPECT_EQ(store_->versions().index().census().used(), reference_.keys());
    return !testing::Test::HasFailure();
  }

  const Case case_;
  const std::string script_;
  std::unique_ptr<Store> store_;
  Reference reference_;
  std::array<Reserved, 3> reserved_;
  std::array<Reference::Handle, 3> handles_;
  std::array<int, 3> steps_{};
};

// Runs all orders of the letters, and returns their number. In some orders a step repeats the one before it, since a
// put that dies at once has no step in between. These orders run, too.
int RunAllOrders(std::string letters, const Case& c) {
  std::sort(letters.begin(), letters.end());
  int runs = 0;
  do {
    ++runs;
    if (!Run(c, letters).Go()) break;
  } while (std::next_permutation(letters.begin(), letters.end()));
  return runs;
}

constexpr std::array kAcks = {Ack::kPlaced, Ack::kPersisted};

class OrdersTest : public testing::TestWithParam<FlushMethod> {
 protected:
  // Runs all orders of these letters, for two puts with each acknowledgement and fate. Returns the number of runs.
  static int RunTwoPuts(const std::string& letters) {
    int runs = 0;
    for (const Ack first : kAcks) {
      for (const Ack second : kAcks) {
        for (const Fate first_fate : kFates) {
          for (const Fate second_fate : kFates) {
            const Case c{GetParam(), {first, second, second}, {first_fate, second_fate, second_fate}};
            runs += RunAllOrders(letters, c);
            if (HasFailure()) return runs;
          }
        }
      }
    }
    return runs;
  }
};
INSTANTIATE_TEST_SUITE_P(Flush, OrdersTest, EveryFlushMethod(), FlushMethodName);

TEST_P(OrdersTest, EveryOrderOfOnePutADeleteASweepAndAnInlinePutIsRight) {
  int runs = 0;
  for (const Ack ack : kAcks) {
    for (const Fate fate : kFates) {
      runs += RunAllOrders("aaadsi", {GetParam(), {ack, ack, ack}, {fate, fate, fate}});
      runs += RunAllOrders("aaaddi", {GetParam(), {ack, ack, ack}, {fate, fate, fate}});
      if (HasFailure()) return;
    }
  }
  EXPECT_EQ(runs, 8 * (120 + 60));
}

TEST_P(OrdersTest, EveryOrderOfTwoPutsADeleteAndAnInlinePutIsRight) {
  EXPECT_EQ(RunTwoPuts("aaabbbdi"), 4 * 16 * 1120);
}

TEST_P(OrdersTest, EveryOrderOfTwoPutsAndASweepIsRight) { EXPECT_EQ(RunTwoPuts("aaabbbs"), 4 * 16 * 140); }

TEST_P(OrdersTest, EveryOrderOfThreePutsIsRight) {
  constexpr std::array kEnds = {Fate::kLandAndCommit, Fate::kTornAndDie};
  int runs = 0;
  for (const Ack ack : kAcks) {
    for (const Fate a : kEnds) {
      for (const Fate b : kEnds) {
        for (const Fate c : kEnds) {
          runs += RunAllOrders("aaabbbccc", {GetParam(), {ack, ack, ack}, {a, b, c}});
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_EQ(runs, 2 * 8 * 1680);
}

}  // namespace
}  // namespace erda::server

// The table of client/put_path.h, for every combination of its inputs. The rules here state the same in another way. A
// second test shows that they leave one outcome for each combination, so no wrong outcome passes.
#include "client/put_path.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace erda::client {
namespace {

using format::Placing;

constexpr PutPath kPaths[] = {PutPath::kAuto, PutPath::kInline, PutPath::kReserve, PutPath::kDelegate};
constexpr Placing kPlacings[] = {Placing::kNone, Placing::kPool, Placing::kStaging, Placing::kWindow};
constexpr PutWay kWays[] = {PutWay::kUndecided,          PutWay::kKeyed,  PutWay::kInline,   PutWay::kReserved,
                            PutWay::kDelegated,          PutWay::kStaged, PutWay::kReadOnly, PutWay::kTooLargeForPool,
                            PutWay::kTooLargeForRequest, PutWay::kNoRight};

std::vector<PutFacts> AllFacts() {
  std::vector<PutFacts> all;
  for (const PutPath asked : kPaths) {
    for (const Placing placing : kPlacings) {
      for (unsigned bits = 0; bits < 64; ++bits) {
        const auto bit = [bits](unsigned n) { return (bits >> n & 1) != 0; };
        all.push_back({.may_write = bit(0),
                       .is_put = bit(1),
                       .fits_pool = bit(2),
                       .asked = asked,
                       .fits_inline = bit(3),
                       .placing = placing,
                       .may_have_chunk = bit(4),
                       .first_large = bit(5)});
      }
    }
  }
  return all;
}

bool CanWriteIntoPool(Placing placing) { return placing == Placing::kPool; }
bool CanStage(Placing placing) { return placing == Placing::kStaging || placing == Placing::kWindow; }
bool HasChunks(Placing placing) { return placing == Placing::kPool || placing == Placing::kWindow; }
bool MayDelegate(const PutFacts& facts) { return HasChunks(facts.placing) && facts.may_have_chunk; }

// Returns the way of a large value that no chunk takes.
PutWay WithoutChunk(Placing placing) {
  if (CanStage(placing)) return PutWay::kStaged;
  return CanWriteIntoPool(placing) ? PutWay::kReserved : PutWay::kNoRight;
}

struct Rule {
  const char* name;
  bool (*holds)(const PutFacts& facts, PutWay way);
};

// These hold for every operation. The first that fits comes before the others.
constexpr Rule kRulesOfAll[] = {
    {"a client that may only read is refused",
     [](const PutFacts& facts, PutWay way) { return (way == PutWay::kReadOnly) == !facts.may_write; }},
    {"an operation that is no put goes with its key",
     [](const PutFacts& facts, PutWay way) { return (way == PutWay::kKeyed) == (facts.may_write && !facts.is_put); }},
    {"a value that no segment holds is refused",
     [](const PutFacts& facts, PutWay way) {
       return (way == PutWay::kTooLargeForPool) == (facts.may_write && facts.is_put && !facts.fits_pool);
     }},
};

// These hold for the puts that are left.
bool IsLeft(const PutFacts& facts) { return facts.may_write && facts.is_put && facts.fits_pool; }

constexpr Rule kRules[] = {
    {"every put has a way", [](const PutFacts&, PutWay way) { return way != PutWay::kUndecided; }},
    {"the server allows the way",
     [](const PutFacts& facts, PutWay way) {
       return (way != PutWay::kReserved || CanWriteIntoPool(facts.placing)) &&
              (way != PutWay::kStaged || CanStage(facts.placing)) &&
              (way != PutWay::kDelegated || MayDelegate(facts)) &&
              (way != PutWay::kNoRight || !CanWriteIntoPool(facts.placing));
     }},
    {"only a value that fits goes inline",
     [](const PutFacts& facts, PutWay way) { return way != PutWay::kInline || facts.fits_inline; }},
    {"a put is too large if the caller asks for inline, and the value does not fit",
     [](const PutFacts& facts, PutWay way) {
       return (way == PutWay::kTooLargeForRequest) == (facts.asked == PutPath::kInline && !facts.fits_inline);
     }},
    {"kAuto and kInline send a value that fits inline",
     [](const PutFacts& facts, PutWay way) {
       const bool inline_if_it_fits = facts.asked == PutPath::kAuto || facts.asked == PutPath::kInline;
       return !inline_if_it_fits || !facts.fits_inline || way == PutWay::kInline;
     }},
    {"a value that fits is refused only if the caller asks to reserve",
     [](const PutFacts& facts, PutWay way) {
       return !facts.fits_inline || facts.asked == PutPath::kReserve || way != PutWay::kNoRight;
     }},
    {"kReserve reserves, or has no right to",
     [](const PutFacts& facts, PutWay way) {
       return facts.asked != PutPath::kReserve ||
              way == (CanWriteIntoPool(facts.placing) ? PutWay::kReserved : PutWay::kNoRight);
     }},
    {"kDelegate takes a chunk, or the next best way",
     [](const PutFacts& facts, PutWay way) {
       if (facts.asked != PutPath::kDelegate) return true;
       if (MayDelegate(facts)) return way == PutWay::kDelegated;
       const bool goes_inline = facts.fits_inline && !CanStage(facts.placing);
       return way == (goes_inline ? PutWay::kInline : WithoutChunk(facts.placing));
     }},
    {"kAuto takes a chunk for a large value, but not for the first one",
     [](const PutFacts& facts, PutWay way) {
       if (facts.asked != PutPath::kAuto || facts.fits_inline) return true;
       const bool takes_chunk = MayDelegate(facts) && !facts.first_large;
       return way == (takes_chunk ? PutWay::kDelegated : WithoutChunk(facts.placing));
     }},
};

// Returns the first rule that the outcome breaks, or an empty text.
std::string_view BrokenRule(const PutFacts& facts, PutWay way) {
  for (const Rule& rule : kRulesOfAll) {
    if (!rule.holds(facts, way)) return rule.name;
  }
  if (!IsLeft(facts)) return {};
  for (const Rule& rule : kRules) {
    if (!rule.holds(facts, way)) return rule.name;
  }
  return {};
}

std::string Describe(const PutFacts& facts) {
  return "may write " + std::to_string(facts.may_write) + ", is a put " + std::to_string(facts.is_put) +
         ", fits the pool " + std::to_string(facts.fits_pool) + ", asked " +
         std::to_string(static_cast<int>(facts.asked)) + ", fits " + std::to_string(facts.fits_inline) + ", placing " +
         std::to_string(static_cast<int>(facts.placing)) + ", may have a chunk " +
         std::to_string(facts.may_have_chunk) + ", first large " + std::to_string(facts.first_large);
}

TEST(PutPathTest, EachOutcomeKeepsTheRules) {
  for (const PutFacts& facts : AllFacts()) EXPECT_EQ(BrokenRule(facts, DecidePutWay(facts)), "") << Describe(facts);
}

TEST(PutPathTest, EachOtherOutcomeBreaksARule) {
  for (const PutFacts& facts : AllFacts()) {
    for (const PutWay way : kWays) {
      if (way == DecidePutWay(facts)) continue;
      EXPECT_NE(BrokenRule(facts, way), "") << Describe(facts) << ": " << static_cast<int>(way);
    }
  }
}

}  // namespace
}  // namespace erda::client

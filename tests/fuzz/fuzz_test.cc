// Runs the fuzzers' targets in every build: with the corpus, and with a fixed number of random inputs. tools/test also
// runs the fuzzers themselves.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "fuzz/input.h"
#include "fuzz/journal_input.h"
#include "fuzz/targets.h"

namespace erda::fuzz {
namespace {

using Target = void (*)(std::span<const uint8_t>);

void Run(Target target, const std::string& input) {
  target({reinterpret_cast<const uint8_t*>(input.data()), input.size()});
}

void RunCorpus(Target target, const std::string& name) {
  std::set<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(std::string(ERDA_FUZZ_CORPUS) + "/" + name)) {
    files.insert(file.path());
  }
  EXPECT_GT(files.size(), 10U);
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    Run(target, {std::istreambuf_iterator<char>(file), {}});
  }
}

void RunRandom(Target target, int runs, uint8_t places = kPlaces) {
  Random random(4);
  for (int i = 0; i < runs; ++i) {
    std::string input;
    for (uint64_t n = random.Between(2, 20); n > 0; --n) Mutate(&input, &random, places);
    input[0] = static_cast<char>(i);
    Run(target, input);
  }
}

TEST(FuzzTest, UnchangedPoolsOpen) {
  for (uint8_t pool = 0; pool < kPools; ++pool) {
    const std::array<uint8_t, 2> input = {pool, 0};
    EXPECT_TRUE(PoolServer::Open(Decode(input).image).ok());
  }
}

TEST(FuzzTest, InputsDecodeAlikeEachTime) {
  Random random(1);
  std::string input;
  for (int i = 0; i < 100; ++i) Mutate(&input, &random);
  EXPECT_LE(input.size(), kInputBytesMax);
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  EXPECT_TRUE(Decode(bytes).image == Decode(bytes).image);
}

// Random bytes are a conversation, too. The test checks that the server serves enough of their requests.
TEST(FuzzTest, ServerSurvivesRandomConversations) {
  Random random(7);
  Spoken sum;
  for (int i = 0; i < 800; ++i) {
    std::vector<uint8_t> input(8 * random.Between(10, 120));
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(random.Next());
    const Spoken spoken = Speak(input);
    sum.actions += spoken.actions;
    for (size_t op = 0; op < sum.served.size(); ++op) sum.served[op] += spoken.served[op];
    sum.violations += spoken.violations;
  }
  RecordProperty("actions", std::to_string(sum.actions));
  RecordProperty("violations", std::to_string(sum.violations));
  EXPECT_GT(sum.actions, 40'000U);
  for (size_t op = 1; op < sum.served.size(); ++op) EXPECT_GT(sum.served[op], 10U) << op;
  EXPECT_GT(sum.violations, 1000U);
}

TEST(FuzzTest, BothEndsOfALinkSurviveRandomPeers) {
  Random random(8);
  for (const uint8_t side : std::to_array<uint8_t>({0, 1})) {
    Linked sum;
    for (int i = 0; i < 10'000; ++i) {
      std::vector<uint8_t> input(1 + 8 * random.Between(10, 120));
      for (uint8_t& byte : input) byte = static_cast<uint8_t>(random.Next());
      input[0] = side;
      const Linked linked = Link(input);
      sum.stored += linked.stored;
      sum.ended += linked.ended;
    }
    EXPECT_GT(sum.stored, 1000U) << "by side " << int{side};
    EXPECT_GT(sum.ended, 1000U) << "by side " << int{side};
  }
}

TEST(FuzzTest, BothEndsOfALinkSurvivePeersOfTheCorpus) {
  RunCorpus([](std::span<const uint8_t> input) { Link(input); }, "link");
}
TEST(FuzzTest, ServerSurvivesPoolsOfTheCorpus) { RunCorpus(OpenAndServe, "open"); }
TEST(FuzzTest, InspectionSurvivesPoolsOfTheCorpus) { RunCorpus(Inspect, "inspect"); }
TEST(FuzzTest, SalvageSurvivesPoolsOfTheCorpus) { RunCorpus(Salvage, "inspect"); }
TEST(FuzzTest, ServerSurvivesJournalsOfTheCorpus) { RunCorpus(OpenJournaled, "journal"); }
TEST(FuzzTest, ServerSurvivesConversationsOfTheCorpus) {
  RunCorpus([](std::span<const uint8_t> input) { Speak(input); }, "speak");
}
TEST(FuzzTest, ServerSurvivesRandomPools) { RunRandom(OpenAndServe, 4000); }
TEST(FuzzTest, InspectionSurvivesRandomPools) { RunRandom(Inspect, 4000); }
TEST(FuzzTest, SalvageSurvivesRandomPools) { RunRandom(Salvage, 4000); }

TEST(FuzzTest, ServerSurvivesRandomJournals) { RunRandom(OpenJournaled, 300, kJournalPlaces); }

TEST(FuzzTest, UnchangedJournalsOpen) {
  for (uint8_t pool = 0; pool < static_cast<uint8_t>(JournalPool::kCount); ++pool) {
    for (const uint8_t todo : std::to_array<uint8_t>({0x00, 0x03, 0x0c, 0x2b, 0x37}))
      OpenJournaled(std::array<uint8_t, 2>{pool, todo});
  }
}

TEST(FuzzTest, SalvageOfUnchangedPoolsFindsTheValuesOfGets) {
  for (uint8_t pool = 0; pool < kPools; ++pool) Salvage(std::array<uint8_t, 2>{pool, 0});
}

}  // namespace
}  // namespace erda::fuzz

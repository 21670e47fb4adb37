// The fuzzers' targets in every build: the corpus, and random inputs, a fixed number of them. tools/test runs the
// fuzzers themselves as well.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "fuzz/input.h"
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

void RunRandom(Target target, int runs) {
  Random random(4);
  for (int i = 0; i < runs; ++i) {
    std::string input;
    for (uint64_t n = random.Between(2, 20); n > 0; --n) Mutate(&input, &random);
    input[0] = static_cast<char>(i);
    Run(target, input);
  }
}

TEST(FuzzTest, PoolsAsTheyAreOpen) {
  for (uint8_t pool = 0; pool < kPools; ++pool) {
    const std::array<uint8_t, 2> input = {pool, 0};
    EXPECT_TRUE(PoolServer::Open(Decode(input).image).ok());
  }
}

TEST(FuzzTest, InputsAreDecodedAlikeEachTime) {
  Random random(1);
  std::string input;
  for (int i = 0; i < 100; ++i) Mutate(&input, &random);
  EXPECT_LE(input.size(), kInputBytesMax);
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  EXPECT_TRUE(Decode(bytes).image == Decode(bytes).image);
}

TEST(FuzzTest, OpenCorpus) { RunCorpus(OpenAndServe, "open"); }
TEST(FuzzTest, InspectCorpus) { RunCorpus(Inspect, "inspect"); }
TEST(FuzzTest, OpenRandom) { RunRandom(OpenAndServe, 4000); }
TEST(FuzzTest, InspectRandom) { RunRandom(Inspect, 4000); }

}  // namespace
}  // namespace erda::fuzz

// The harness runs with a server that keeps everything, and with one that loses data.
#include <gtest/gtest.h>

#include <filesystem>

#include "paths.h"
#include "programs/fixture.h"

namespace erda::crash {
namespace {

class HarnessTest : public ProgramsTest {
 protected:
  // A folder in memory that ends with the test.
  HarnessTest() { std::filesystem::create_directory(memory_); }
  ~HarnessTest() override { std::filesystem::remove_all(memory_); }

  [[nodiscard]] Ended Rounds(const std::string& server, const std::string& rounds, const Words& more = {}) const {
    std::filesystem::create_directory(Path("records"));
    Words command = {BinDir() + "/../tests/erda-crash",
                     "run",
                     "--folder",
                     Path("records"),
                     "--server",
                     server,
                     "--address",
                     Address(),
                     "--pool",
                     Pool(),
                     "--rounds",
                     rounds,
                     "--seed",
                     "5"};
    command.insert(command.end(), more.begin(), more.end());
    return Process(command).Wait();
  }
  [[nodiscard]] Words Journal() const { return {"--journal", Path("journal"), "--journal-memory", memory_}; }

  const std::string memory_ = "/dev/shm/" + std::filesystem::path(Path("")).parent_path().filename().string();
};

TEST_F(HarnessTest, ServerThatKeepsEverythingPasses) {
  const Ended ended = Rounds(BinDir() + "/erda-server", "3");
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("verdict: nothing was lost\n"), std::string::npos) << ended.out;
  EXPECT_NE(ended.err.find("erda-crash: starting, after 0 s\n"), std::string::npos) << ended.err;
  EXPECT_NE(ended.out.find("seed 5: 3 rounds, "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("server: recovered in "), std::string::npos) << ended.out;
  EXPECT_TRUE(std::filesystem::is_empty(Path("records"))) << "what went well is not kept";
}

TEST_F(HarnessTest, ServerThatLosesRecentPutsIsReported) {
  // Each start but the first two finds the pool of the start before.
  WriteFile(Path("server"), "#!/bin/sh\npool=" + Pool() + R"(
if [ -e "$pool" ]; then
  cp --sparse=always "$pool" "$pool.now"
  if [ -e "$pool.before" ]; then cp --sparse=always "$pool.before" "$pool"; fi
  mv "$pool.now" "$pool.before"
fi
exec )" + BinDir() + "/erda-server \"$@\"\n");
  std::filesystem::permissions(Path("server"), std::filesystem::perms::owner_all);
  const Ended ended = Rounds(Path("server"), "20");
  EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("LOST in the last round. 'key "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("  at first: "), std::string::npos) << "the key's history: " << ended.out;
  EXPECT_NE(ended.out.find("verdict: SOMETHING WAS LOST\n"), std::string::npos) << ended.out;
  EXPECT_FALSE(std::filesystem::is_empty(Path("records"))) << "the records are kept";
}

TEST_F(HarnessTest, JournalKeepsEverythingThoughTheImageIsLost) {
  const Ended ended = Rounds(BinDir() + "/erda-server", "4", Journal());
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("verdict: nothing was lost\n"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("; the image was lost "), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("; the image was lost 0 times"), std::string::npos) << ended.out;
  EXPECT_TRUE(std::filesystem::is_empty(memory_)) << "the last server stopped cleanly";
}

// No answer waits for the ring. So a loss of the image takes acknowledged puts, unless the writer had just written all.
TEST_F(HarnessTest, JournalThatIsNotWrittenIsReported) {
  Words journal = Journal();
  journal.insert(journal.end(), {"--sync", "never"});
  const Ended ended = Rounds(BinDir() + "/erda-server", "20", journal);
  EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("LOST in the last round. 'key "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("; the image was lost "), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("; the image was lost 0 times"), std::string::npos) << ended.out;
}

}  // namespace
}  // namespace erda::crash

// erda-server --archive, erda-pool backup and restore: pools as they were at several times.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "programs/fixture.h"

namespace erda {
namespace {

namespace fs = std::filesystem;

class ArchiveProgramTest : public ProgramsTest {
 protected:
  ArchiveProgramTest() {
    fs::create_directory(memory_);
    fs::create_directory(Path("archive"));
  }
  ~ArchiveProgramTest() override { fs::remove_all(memory_); }

  [[nodiscard]] Words Flags(const Words& more = {}) const {
    Words flags = {"--journal", Path("journal") + ",size=16M", "--journal-memory", memory_, "--journal-on-tmpfs"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  [[nodiscard]] std::unique_ptr<Process> Serve() const {
    return StartServer(Flags({"--shards", "2", "--archive", Path("archive")}));
  }
  void Reboot() {
    fs::remove_all(memory_);
    fs::create_directory(memory_);
  }
  void Put(const std::string& key, const std::string& value) {
    ExpectFine(Cli({"put", key, value}));
    now_[key] = value;
  }
  // Notes the present time, and what all keys are.
  void Note() {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
    std::string fraction = std::to_string(micros % 1'000'000);
    fraction.insert(0, 6 - fraction.size(), '0');
    history_.emplace_back(std::to_string(micros / 1'000'000) + "." + fraction, now_);
  }
  Ended BackUp() {
    return Run("erda-pool",
               {"backup", Pool(), "--journal", Path("journal"), "--to", Path("base"), "--archive", Path("archive")});
  }
  [[nodiscard]] Ended Restore(const std::string& to, const Words& more = {}) const {
    Words words = {"restore",
                   "--base",
                   Path("base"),
                   "--archive",
                   Path("archive"),
                   "--to",
                   Path(to),
                   "--journal",
                   Path(to + ".journal,size=16M"),
                   "--journal-on-tmpfs"};
    words.insert(words.end(), more.begin(), more.end());
    return Run("erda-pool", words);
  }
  // Serves a restored pool, and compares all keys.
  void ExpectKeys(const std::string& pool, const std::map<std::string, std::string>& keys) {
    Reboot();
    const auto server = StartServerWith({"--pool", Path(pool), "--listen", Address(), "--journal",
                                         Path(pool + ".journal"), "--journal-memory", memory_, "--journal-on-tmpfs"});
    EXPECT_NE(server->out().find("recovered"), std::string::npos) << server->out();
    for (const auto& [key, last] : now_) {
      const auto expected = keys.find(key);
      const Ended got = Cli({"get", key});
      EXPECT_EQ(got.out, expected == keys.end() ? "" : expected->second + "\n") << pool << ": " << key;
    }
    StopServer(*server);
  }

  const std::string memory_ = "/dev/shm/" + fs::path(Path("")).parent_path().filename().string();
  std::map<std::string, std::string> now_;
  std::vector<std::pair<std::string, std::map<std::string, std::string>>> history_;
};

// The server is killed, and loses its memory, and is stopped. A delete is in the history, too.
TEST_F(ArchiveProgramTest, PoolIsRestoredToEachTimeOfItsHistory) {
  {
    const auto server = Serve();
    for (int i = 0; i < 8; ++i) Put("key" + std::to_string(i), "first");
    const Ended copy = BackUp();
    ExpectFine(copy);
    EXPECT_NE(copy.out.find("shard 1    needs the archive from place"), std::string::npos) << copy.out;
    Note();
    for (int i = 0; i < 8; i += 2) Put("key" + std::to_string(i), "second");
    Note();
    server->Signal(SIGKILL);
    (void)server->Wait();
  }
  {
    const auto server = Serve();  // It goes on with the memory.
    for (int i = 0; i < 8; i += 3) Put("key" + std::to_string(i), "third");
    ExpectFine(Cli({"del", "key1"}));
    now_.erase("key1");
    Note();
    server->Signal(SIGKILL);
    (void)server->Wait();
    Reboot();
  }
  {
    const auto server = Serve();  // It reads the journal.
    Put("key1", "fourth");
    Note();
    Put("new", "last");
    StopServer(*server);
  }
  for (size_t i = 0; i < history_.size(); ++i) {
    const std::string pool = "at" + std::to_string(i);
    ExpectFine(Restore(pool, {"--until", history_[i].first}));
    ExpectKeys(pool, history_[i].second);
  }
  ExpectFine(Restore("latest"));
  ExpectKeys("latest", now_);
  ExpectFine(Run("erda-pool", {"check", Path("latest")}));
}

TEST_F(ArchiveProgramTest, ErrorsSayWhatToDo) {
  ExpectRefused(
      ServerWith({"--pool", Path("plain"), "--size", "64M", "--listen", Address(), "--archive", Path("archive")}), 2,
      "needs a journal");
  EXPECT_FALSE(fs::exists(Path("plain")));
  ExpectRefused(
      ServerWith(Flags({"--pool", Path("other"), "--size", "64M", "--listen", Address(), "--archive", Path("no")})), 2,
      "cannot open the archive's folder " + Path("no"));
  EXPECT_FALSE(fs::exists(Path("other")));
  const auto server = Serve();
  Put("key", "value");
  ExpectFine(BackUp());
  ExpectRefused(BackUp(), 2, "exists already");
  ExpectRefused(Restore("early", {"--until", "1000000000"}), 2, "before the end of the base copy");
  ExpectRefused(Restore("early", {"--until", "yesterday"}), 2, "is not a time");
  ExpectRefused(Restore("early"), 1, "and the base copy needs it up to place");
  StopServer(*server);
  ExpectRefused(Restore("pool"), 2, "exists already");
  // The same time, written in another way.
  ExpectFine(Restore("later", {"--until", "2100-01-01T00:00:00.5Z"}));
  fs::create_directory(Path("empty"));
  ExpectRefused(Run("erda-pool", {"restore", "--base", Path("base"), "--archive", Path("empty"), "--to", Path("new"),
                                  "--journal", Path("new.journal"), "--journal-on-tmpfs"}),
                1, "and the base copy needs it up to place");
}

// Puts go on, and the server says what the archive lacks.
TEST_F(ArchiveProgramTest, ArchiveThatGoesAwayStopsNoPut) {
  const auto server = StartServer(Flags({"--archive", Path("archive"), "--log-file", Path("log")}));
  Put("key", "value");
  fs::remove_all(Path("archive"));  // As a disk that went away.
  const auto has = [this](const std::string& words) { return ReadFile(Path("log")).find(words) != std::string::npos; };
  for (int i = 0; i < 20 && !has("has a gap"); ++i) {
    const Ended load = Run("erda-ycsb", {"-a", Address(), "--workload", "a", "--records", "3000", "--operations", "1",
                                         "--value-size", "4000"});
    ASSERT_EQ(load.code, 0) << load.err;
  }
  EXPECT_TRUE(has("the archive has failed")) << ReadFile(Path("log"));
  EXPECT_TRUE(has("the archive of shard 0 has a gap: it lacks the stream from place")) << ReadFile(Path("log"));
  const Ended stats = Cli({"stats"});
  EXPECT_NE(stats.out.find("archives_failing             1"), std::string::npos) << stats.out;
  EXPECT_EQ(stats.out.find("archive_gaps                 0"), std::string::npos) << stats.out;
  EXPECT_EQ(Cli({"get", "key"}).out, "value\n");
  fs::create_directory(Path("archive"));
  Put("key", "later");
  StopServer(*server);
  EXPECT_FALSE(fs::is_empty(Path("archive")));
}

}  // namespace
}  // namespace erda

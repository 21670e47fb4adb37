// erda-server's log: its place, the form of its lines, and its content at each level.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "programs/fixture.h"

namespace erda {
namespace {

constexpr const char* kTime = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z ";

class LogTest : public ProgramsTest {
 protected:
  [[nodiscard]] std::string File() const { return Path("log"); }

  // A server that refuses clients without its token.
  [[nodiscard]] Words WithTokens(Words more) const {
    using std::filesystem::perms;
    WriteFile(Path("tokens"), "a-token-that-is-secret\n");
    WriteFile(Path("wrong"), "another-one-that-is-secret\n");
    for (const char* name : {"tokens", "wrong"}) std::filesystem::permissions(Path(name), perms::owner_read);
    more.insert(more.end(), {"--token-file", Path("tokens")});
    return more;
  }
  void BeRefused() const {
    ExpectRefused(Cli({"--token-file", Path("wrong"), "get", "key"}), 7, "does not know this token");
  }
  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream from(text);
    for (std::string line; std::getline(from, line);) lines.push_back(line);
    return lines;
  }
  static size_t LinesWith(const std::string& text, const std::string& pattern) {
    const std::regex regex(pattern);
    size_t count = 0;
    for (const std::string& line : Lines(text)) count += std::regex_search(line, regex) ? 1 : 0;
    return count;
  }
};

TEST_F(LogTest, EachEventIsALineWithTimeAndLevel) {
  const auto server = StartServer(WithTokens({}));
  BeRefused();
  server->Signal(SIGTERM);
  const Ended ended = server->Wait();
  EXPECT_EQ(ended.code, 0);
  ASSERT_EQ(Lines(ended.err).size(), 1U) << ended.err;
  EXPECT_EQ(LinesWith(ended.err, std::string("^") + kTime + "warning: client [0-9a-f]{16} \\(.*\\): refused: "), 1U)
      << ended.err;
}

TEST_F(LogTest, LevelLeavesOutLowerLevels) {
  auto server = StartServer(WithTokens({"--log-level", "error"}));
  BeRefused();
  StopServer(*server);  // Nothing on stderr.

  server = StartServer(WithTokens({"--log-level", "debug"}));
  BeRefused();
  server->Signal(SIGTERM);
  const Ended ended = server->Wait();
  EXPECT_EQ(LinesWith(ended.err, std::string("^") + kTime + "warning: "), 1U) << ended.err;
  EXPECT_EQ(LinesWith(ended.err, std::string("^") + kTime + "debug: max-clients = 1024$"), 1U) << ended.err;
  EXPECT_EQ(LinesWith(ended.err, std::string("^") + kTime + "debug: log-level = 'debug'$"), 1U) << ended.err;
  EXPECT_EQ(ended.err.find("secret"), std::string::npos);

  ExpectRefused(ServerWith({"--pool", Pool(), "--listen", Address(), "--log-level", "loud"}), 2, "--log-level");
}

TEST_F(LogTest, LogFileHasAllLines) {
  for (int run = 1; run <= 2; ++run) {
    const auto server = StartServer(WithTokens({"--log-file", File()}));
    const std::string said = server->out();
    BeRefused();
    StopServer(*server);
    const std::string log = ReadFile(File());
    EXPECT_EQ(Lines(log).size(), 7U * run) << log;
    for (const std::string& line : Lines(log)) EXPECT_TRUE(std::regex_search(line, std::regex(kTime))) << line;
    for (const char* what : {"info: ready, listening on ", "info: shm, flush method ", "warning: client ",
                             "info: stopping on SIGTERM$", "info: stopped$"}) {
      EXPECT_EQ(LinesWith(log, std::string("^") + kTime + what), static_cast<size_t>(run)) << log;
    }
    for (const std::string& line : Lines(said)) {
      EXPECT_NE(log.find(line.substr(std::string("erda-server: ").size())), std::string::npos) << line;
    }
  }
  struct stat status {};
  ASSERT_EQ(::stat(File().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07137, 0U) << "for others, or to be run";
}

TEST_F(LogTest, RenamedLogFileIsFollowedByANewOne) {
  const auto server = StartServer(WithTokens({"--log-file", File()}));
  ASSERT_TRUE(WaitUntil([&] { return LinesWith(ReadFile(File()), "can grow to") == 1; }));
  std::filesystem::rename(File(), Path("log.1"));
  BeRefused();
  ASSERT_TRUE(
      WaitUntil([&] { return std::filesystem::exists(File()) && LinesWith(ReadFile(File()), "refused") == 1; }));
  std::filesystem::remove(File());
  StopServer(*server);
  EXPECT_EQ(Lines(ReadFile(Path("log.1"))).size(), 4U);
  EXPECT_EQ(LinesWith(ReadFile(File()), "stopping|stopped"), 2U);
  EXPECT_EQ(Lines(ReadFile(File())).size(), 2U);
}

TEST_F(LogTest, AFileThatCannotBeOpenedKeepsTheServerFromStarting) {
  const Words arguments = {"--pool", Pool(), "--size", "64M", "--listen", Address(), "--log-file"};
  for (const std::string& file : {Path("none/log"), Path("")}) {
    Words all = arguments;
    all.push_back(file);
    ExpectRefused(ServerWith(all), 1, "cannot open " + file);
    EXPECT_FALSE(std::filesystem::exists(Pool()));
  }
}

TEST_F(LogTest, AServerServesThoughItsLogIsFull) {
  const auto server = StartServer(WithTokens({"--log-file", "/dev/full"}));
  BeRefused();
  ExpectFine(Cli({"--token-file", Path("tokens"), "put", "key", "value"}));
  server->Signal(SIGTERM);
  const Ended ended = server->Wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.err.find("erda-server: log: cannot write to /dev/full: No space left on device\n"), std::string::npos)
      << ended.err;
}

TEST_F(LogTest, ReasonOfAFailedStartIsInTheFile) {
  WriteFile(Pool(), "no pool");
  const Ended ended = ServerWith({"--pool", Pool(), "--listen", Address(), "--log-file", File()});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(LinesWith(ReadFile(File()), std::string("^") + kTime + "error: .*" + Pool()), 1U) << ReadFile(File());
}

TEST_F(LogTest, DamageIsAnErrorWithItsKeyOnOneLine) {
  const std::string value = "a value that is to be found in the file of the pool";
  {
    const auto server = StartServer();
    ExpectFine(Cli({"put", "a\nkey\\", value}));
    StopServer(*server);
  }
  std::string pool = ReadFile(Pool());
  const size_t at = pool.find(value);
  ASSERT_NE(at, std::string::npos);
  pool[at] = 'b';
  WriteFile(Pool(), pool);
  const auto server = StartServer({"--scrub-rate", "1G", "--log-file", File()});
  const std::string line = std::string("^") + kTime +
                           "error: the stored value of key a\\\\x0akey\\\\\\\\ is damaged; only a new put repairs it$";
  EXPECT_TRUE(WaitUntil([&] { return LinesWith(ReadFile(File()), line) > 0; })) << ReadFile(File());
  // The scrubber finds it again and again.
  const auto times_found = [&] {
    const auto stats = nlohmann::json::parse(Cli({"stats", "--json"}).out, nullptr, false);
    return stats.value("damaged_keys", uint64_t{0});
  };
  EXPECT_TRUE(WaitUntil([&] { return times_found() >= 5; }));
  StopServer(*server);
  EXPECT_EQ(LinesWith(ReadFile(File()), "is damaged"), 1U) << ReadFile(File());
}

TEST_F(LogTest, FillingPoolIsLoggedOncePerLevel) {
  const auto server = StartServer({"--log-file", File()});
  const std::string value(200'000, 'v');
  Ended put;
  for (int i = 0; (i == 0 || put.code == 0) && i < 1000; ++i) {
    put = Cli({"put", std::to_string(i), "-"}, value);
  }
  ExpectRefused(put, 4, "no room");
  const std::string full = std::string("^") + kTime + "error: pool " + Pool() + " has no room, and refuses puts";
  EXPECT_TRUE(WaitUntil([&] { return LinesWith(ReadFile(File()), full) > 0; })) << ReadFile(File());
  EXPECT_EQ(LinesWith(ReadFile(File()), "make the pool larger by erda-pool resize$"),
            LinesWith(ReadFile(File()), "live values take"));
  // A pool that stays full is not reported again.
  const auto lines = Lines(ReadFile(File())).size();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Cli({"put", "more", "-"}, value).code, 4);
    ::sleep(1);
  }
  EXPECT_EQ(Lines(ReadFile(File())).size(), lines) << ReadFile(File());
  StopServer(*server);
}

TEST_F(LogTest, HangupReadsTheConfigurationFileAgainAndServesOn) {
  const std::string config = Path("config.toml");
  const auto write = [&](const std::string& more) {
    WriteFile(config, "pool = \"" + Pool() + "\"\nsize = \"64M\"\nlisten = [\"" + Address() + "\"]\n" + more);
  };
  write("log-file = \"" + File() + "\"\n");
  const auto server = StartServerWith({"--config", config});
  WriteFile(Path("other"), "");
  ExpectFine(Cli({"put", "key", "value"}));
  const auto hang_up = [&](const std::string& file, const std::string& line) {
    server->Signal(SIGHUP);
    EXPECT_TRUE(WaitUntil([&] { return LinesWith(ReadFile(file), line) > 0; })) << line << '\n' << ReadFile(file);
  };
  // Changes that do not take effect now are named. The log moves at once.
  write("log-file = \"" + Path("other") + "\"\nlog-level = \"debug\"\nmax-clients = 7\nspin-us = 3\n");
  hang_up(Path("other"), "warning: SIGHUP: max-clients was changed, and counts from the next start on$");
  EXPECT_TRUE(WaitUntil([&] { return LinesWith(ReadFile(Path("other")), "SIGHUP: spin-us was changed") > 0; }));
  EXPECT_EQ(LinesWith(ReadFile(Path("other")), "SIGHUP: log-"), 0U);
  EXPECT_EQ(LinesWith(ReadFile(File()), "SIGHUP"), 0U) << ReadFile(File());
  // A mistake is reported with its line, and changes nothing.
  write("log-file = \"" + File() + "\"\nmax-clients = \"many\"\n");
  hang_up(Path("other"), "error: SIGHUP: " + config + ":5: max-clients must be an integer; nothing was changed$");
  write("log-file = \"" + Path("no/folder") + "\"\n");
  hang_up(Path("other"), "error: SIGHUP: cannot open " + Path("no/folder") + ": .*; nothing was changed$");
  EXPECT_EQ(Cli({"get", "key"}).out, "value\n");
  StopServer(*server);
  EXPECT_EQ(LinesWith(ReadFile(Path("other")), "stopped$"), 1U);
}

TEST_F(LogTest, BusErrorAfterAHangupIsInTheNewLog) {
  const std::string config = Path("config.toml");
  const auto write = [&](const std::string& file) {
    WriteFile(config, "pool = \"" + Pool() + "\"\nsize = \"64M\"\nlisten = [\"" + Address() + "\"]\nlog-file = \"" +
                          file + "\"\n");
  };
  write(File());
  const auto server = StartServerWith({"--config", config});
  ExpectFine(Cli({"put", "key", "value"}));
  write(Path("other"));
  server->Signal(SIGHUP);
  WriteFile(Path("other"), "");
  EXPECT_TRUE(WaitUntil([&] { return LinesWith(ReadFile(Path("other")), "was read again") > 0; }));
  std::filesystem::resize_file(Pool(), 8192);
  (void)Cli({"put", "key", "again"});
  const Ended ended = server->Wait();
  EXPECT_EQ(ended.code, 128 + SIGBUS);
  EXPECT_NE(ReadFile(Path("other")).find("of " + Pool() + " cannot be had any more"), std::string::npos);
  EXPECT_EQ(ReadFile(File()).find("cannot be had any more"), std::string::npos);
}

TEST_F(LogTest, HangupChangesLimitsAndTheTokenFile) {
  const std::string config = Path("config.toml");
  for (const std::string name : {"first", "second"}) {
    WriteFile(Path(name), "the-token-in-the-" + name + "\n");
    ASSERT_EQ(chmod(Path(name).c_str(), 0600), 0);
  }
  const auto write = [&](const std::string& more) {
    WriteFile(config, "pool = \"" + Pool() + "\"\nsize = \"64M\"\nlisten = [\"" + Address() + "\"]\nlog-file = \"" +
                          File() + "\"\n" + more);
  };
  const auto tokens = [&](const std::string& name) { return "token-file = \"" + Path(name) + "\"\n"; };
  write(tokens("first"));
  const auto server = StartServerWith({"--config", config});
  const auto put = [&](const std::string& name) { return Cli({"--token-file", Path(name), "put", "key", "value"}); };
  ExpectFine(put("first"));
  const auto hang_up = [&](const std::string& line) {
    const auto count = [&] { return LinesWith(ReadFile(File()), line); };
    const size_t before = count();
    server->Signal(SIGHUP);
    EXPECT_TRUE(WaitUntil([&] { return count() > before; })) << line << '\n' << ReadFile(File());
  };
  const std::string read = "info: SIGHUP: " + config + " was read again$";
  write(tokens("second") + "connects-per-second = 1\n");
  hang_up(read);
  EXPECT_NE(put("first").code, 0);
  EXPECT_TRUE(WaitUntil([&] { return put("second").code == 4; })) << "more than one connection in a second";
  // An error changes nothing.
  write(tokens("none") + "connects-per-second = 0\n");
  hang_up("error: SIGHUP: .*" + Path("none") + ".*; nothing was changed$");
  EXPECT_TRUE(WaitUntil([&] { return put("second").code == 4; }));
  write(tokens("second") + "connects-per-second = 0\nclients-per-token = 50\nrequests-per-second = 1000\n");
  hang_up(read);
  for (int i = 0; i < 10; ++i) ExpectFine(put("second"));
  EXPECT_EQ(LinesWith(ReadFile(File()), "was changed, and counts from the next start on"), 0U) << ReadFile(File());
  // The server asks for tokens until the next start.
  write("");
  hang_up("warning: SIGHUP: token-file was changed, and counts from the next start on$");
  EXPECT_NE(Cli({"put", "key", "value"}).code, 0);
  ExpectFine(put("second"));
  StopServer(*server);
}

TEST_F(LogTest, HangupWithoutAConfigurationFileStopsNothing) {
  const auto server = StartServer({"--log-file", File()});
  server->Signal(SIGHUP);
  EXPECT_TRUE(
      WaitUntil([&] { return LinesWith(ReadFile(File()), "SIGHUP: the server was started without --config") > 0; }));
  ExpectFine(Cli({"put", "key", "value"}));
  StopServer(*server);
}

TEST_F(LogTest, LinesForTheJournalHaveTheirPriority) {
  // As systemd does: stderr, and the identity of its file.
  const std::string as_systemd = "exec 2> " + Path("journal") + "; JOURNAL_STREAM=$(stat -c %d:%i " + Path("journal") +
                                 ") exec \"$@\" --log-level debug";
  Words command = {"/bin/sh", "-c", as_systemd, "sh"};
  const Words server_command = ServerCommand(WithTokens({}));
  command.insert(command.end(), server_command.begin(), server_command.end());
  Process server(command);
  ASSERT_TRUE(WaitUntil([&] { return server.out().find("flush method") != std::string::npos; }));
  BeRefused();
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait().code, 0);
  const std::string journal = ReadFile(Path("journal"));
  EXPECT_EQ(LinesWith(journal, "^<4>client [0-9a-f]{16} "), 1U) << journal;
  EXPECT_EQ(LinesWith(journal, "^<7>max-clients = 1024$"), 1U) << journal;
  EXPECT_EQ(LinesWith(journal, "^<[0-7]>"), Lines(journal).size()) << journal;
}

}  // namespace
}  // namespace erda

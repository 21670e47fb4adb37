// erda-server's configuration file: accepted and refused contents, and flags, which win over it.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "programs/fixture.h"

namespace erda {
namespace {

class ConfigTest : public ProgramsTest {
 protected:
  [[nodiscard]] std::string File() const { return Path("server.toml"); }
  // Runs a server with this file and these flags.
  [[nodiscard]] Ended With(const std::string& text, Words flags = {}) const {
    WriteFile(File(), text);
    flags.insert(flags.end(), {"--config", File()});
    return ServerWith(flags);
  }
  [[nodiscard]] Ended Check(const std::string& text, Words flags = {}) const {
    flags.emplace_back("--check");
    return With(text, flags);
  }
  // The three lines that all files need.
  [[nodiscard]] std::string Needed() const {
    return "pool = '" + Pool() + "'\nsize = '64M'\nlisten = '" + Address() + "'\n";
  }
  void ExpectWrong(const std::string& text, int line, const std::string& words) const {
    for (const bool check : {false, true}) {
      SCOPED_TRACE(text + (check ? " --check" : ""));
      const Ended ended = check ? Check(text) : With(text);
      ExpectRefused(ended, 2, "erda-server: " + File() + ":" + std::to_string(line) + ": ");
      ExpectRefused(ended, 2, words);
    }
    EXPECT_FALSE(std::filesystem::exists(Pool()));
  }
};

// Checks that a checked file has the line.
void ExpectLine(const Ended& checked, const std::string& line) {
  ExpectFine(checked);
  EXPECT_NE(("\n" + checked.out).find("\n" + line + "\n"), std::string::npos) << line << " is not in\n" << checked.out;
}

// Each option with a value other than its default, as TOML.
const std::map<std::string, std::string> kValues = {{"pool", "'dram:'"},
                                                    {"size", "134217728"},
                                                    {"listen", "[ 'shm:/tmp/a', 'verbs://10.0.0.1:7700' ]"},
                                                    {"token-file", "'/etc/erda/tokens'"},
                                                    {"scrub-rate", "0"},
                                                    {"sync", "'never'"},
                                                    {"shards", "3"},
                                                    {"region-size", "4194304"},
                                                    {"segment-size", "1048576"},
                                                    {"index-entries", "5000"},
                                                    {"grow-to", "1073741824"},
                                                    {"populate", "true"},
                                                    {"max-clients", "7"},
                                                    {"slots-per-client", "8"},
                                                    {"slot-bytes", "4096"},
                                                    {"reservations-per-client", "16"},
                                                    {"clients-per-token", "2"},
                                                    {"requests-per-second", "100"},
                                                    {"connects-per-second", "5"},
                                                    {"metrics", "'127.0.0.1:9464'"},
                                                    {"log-level", "'warning'"},
                                                    {"log-file", "'/tmp/erda.log'"},
                                                    {"flush", "'read-after-write'"},
                                                    {"shm-access", "'group'"},
                                                    {"pool-writes", "'nobody'"},
                                                    {"staging-bytes", "1048576"},
                                                    {"spin-us", "10"},
                                                    {"nvm-write-latency-ns", "150"},
                                                    {"journal", "'/srv/journal,size=8M'"},
                                                    {"journal-memory", "'/dev/shm/erda'"},
                                                    {"journal-front", "'/dev/dax1.0'"},
                                                    {"journal-on-tmpfs", "true"},
                                                    {"archive", "'/srv/archive'"},
                                                    {"polling", "'sleep'"}};

TEST_F(ConfigTest, EveryFlagIsAKey) {
  std::string help = ServerWith({"--help"}).out;
  std::set<std::string> flags;
  const std::regex flag("\n +(?:-[a-z],)?--([a-z-]+)");
  for (std::smatch match; std::regex_search(help, match, flag); help = match.suffix()) flags.insert(match[1]);
  for (const char* of_the_program : {"help", "version", "config", "check"}) EXPECT_EQ(flags.erase(of_the_program), 1);
  std::set<std::string> keys;
  std::string text;
  for (const auto& [key, value] : kValues) {
    keys.insert(key);
    text += key + " = " + value + "\n";
  }
  EXPECT_EQ(flags, keys);
  const Ended checked = Check(text);
  for (const auto& [key, value] : kValues) ExpectLine(checked, key + " = " + value);
  // The output of --check is such a file, and gives the same output.
  EXPECT_EQ(Check(checked.out).out, checked.out);
}

TEST_F(ConfigTest, MissingKeysHaveTheirDefaults) {
  const Ended checked = Check(Needed());
  ExpectLine(checked, "pool = '" + Pool() + "'");
  ExpectLine(checked, "size = 67108864");
  ExpectLine(checked, "listen = [ '" + Address() + "' ]");
  ExpectLine(checked, "max-clients = 1024");
  ExpectLine(checked, "scrub-rate = 1048576");
  ExpectLine(checked, "polling = 'adaptive'");
  ExpectLine(checked, "flush = 'auto'");
  for (const char* key : {"token-file", "region-size", "config", "check"}) {
    EXPECT_EQ(checked.out.find(key), std::string::npos) << key;
  }
  EXPECT_EQ(Check(checked.out).out, checked.out);
}

TEST_F(ConfigTest, CheckOpensNothing) {
  ExpectFine(Check(Needed()));
  EXPECT_FALSE(std::filesystem::exists(Pool()));
  EXPECT_FALSE(std::filesystem::exists(Path("socket")));
  ExpectFine(ServerWith({"--pool", Pool(), "--listen", Address(), "--check"}));  // No file is needed.
  EXPECT_FALSE(std::filesystem::exists(Pool()));
}

TEST_F(ConfigTest, ServerUsesTheSettingsOfItsFile) {
  WriteFile(File(), Needed() + "shards = 2\npool-writes = 'nobody'\n");
  const auto server = StartServerWith({"--config", File()});
  EXPECT_NE(server->out().find(", 2 shards\n"), std::string::npos) << server->out();
  ExpectFine(Cli({"put", "key", "value"}));
  EXPECT_NE(Cli({"stats"}).out.find("staging"), std::string::npos);
  StopServer(*server);
}

TEST_F(ConfigTest, FlagsWinOverTheFile) {
  const std::string text = Needed() + "shards = 2\npolling = 'busy'\nmax-clients = 5\n";
  const Ended checked = Check(text, {"--shards", "4", "--polling", "sleep", "--listen", "shm:/tmp/x", "--size", "1G"});
  ExpectLine(checked, "shards = 4");
  ExpectLine(checked, "polling = 'sleep'");
  ExpectLine(checked, "listen = [ 'shm:/tmp/x' ]");
  ExpectLine(checked, "size = 1073741824");
  ExpectLine(checked, "max-clients = 5");
  // The flag wins in the server, too, and not only in the output.
  const auto server = StartServerWith({"--config", File(), "--shards", "1", "--polling", "sleep"});
  EXPECT_NE(server->out().find(", 1 shard\n"), std::string::npos) << server->out();
  StopServer(*server);
  // A mistake counts even if a flag replaces it.
  ExpectRefused(Check("shards = 'two'\n", {"--pool", Pool(), "--listen", Address(), "--shards", "4"}), 2, ":1: ");
}

TEST_F(ConfigTest, UnknownKeysAreNamedWithTheirLine) {
  ExpectWrong(Needed() + "\n# more\nshard = 2\n", 6, "there is no key shard");
  ExpectWrong("max_clients = 2\n" + Needed(), 1, "there is no key max_clients");
  ExpectWrong(Needed() + "[limits]\nmax-clients = 2\n", 4, "there is no key limits");
  ExpectWrong(Needed() + "limits.max-clients = 2\n", 4, "there is no key limits");
  ExpectWrong(Needed() + "config = 'another'\n", 4, "there is no key config");
  ExpectWrong(Needed() + "check = true\n", 4, "there is no key check");
  // The first of several.
  ExpectWrong("z = 1\na = 2\n" + Needed(), 1, "there is no key z");
}

TEST_F(ConfigTest, WrongTypesAreNamedWithTheirLine) {
  ExpectWrong(Needed() + "shards = '2'\n", 4, "shards must be an integer");
  ExpectWrong(Needed() + "shards = 2.0\n", 4, "shards must be an integer");
  ExpectWrong(Needed() + "shards = true\n", 4, "shards must be an integer");
  ExpectWrong(Needed() + "shards = [1]\n", 4, "shards must be an integer");
  ExpectWrong(Needed() + "[shards]\nn = 1\n", 4, "shards must be an integer");
  ExpectWrong(Needed() + "scrub-rate = 1.5\n", 4, "scrub-rate must be an integer or a string");
  ExpectWrong(Needed() + "polling = 1\n", 4, "polling must be a string");
  ExpectWrong(Needed() + "populate = 1\n", 4, "populate must be true or false");
  ExpectWrong(Needed() + "populate = 'yes'\n", 4, "populate must be true or false");
  ExpectWrong(Needed() + "token-file = ['a']\n", 4, "token-file must be a string");
  ExpectWrong("listen = 7700\npool = 'dram:'\n", 1, "listen must be a string or an array of strings");
  ExpectWrong("listen = []\npool = 'dram:'\n", 1, "listen must be a string or an array of strings");
  ExpectWrong("pool = 'dram:'\nlisten = [\n  'shm:/tmp/a',\n  7700,\n]\n", 4, "listen must be");
}

TEST_F(ConfigTest, ValuesOutOfRangeAreNamedWithTheirLine) {
  ExpectWrong(Needed() + "shards = -1\n", 4, "shards: '-1' is not a number from 0 to 1024");
  ExpectWrong(Needed() + "shards = 1025\n", 4, "shards: '1025' is not a number from 0 to 1024");
  ExpectWrong(Needed() + "max-clients = 65537\n", 4, "max-clients: '65537' is not a number from 1 to 65536");
  ExpectWrong(Needed() + "slot-bytes = 2049\n", 4, "slot-bytes: '2049' is not a multiple of 64");
  ExpectWrong(Needed() + "requests-per-second = 99\n", 4, "requests-per-second: '99' is not 0, or 100 and more");
  ExpectWrong(Needed() + "staging-bytes = '2G'\n", 4, "staging-bytes: ");
  ExpectWrong(Needed() + "scrub-rate = '64X'\n", 4, "scrub-rate: '64X' is not a size");
  ExpectWrong(Needed() + "scrub-rate = -1\n", 4, "scrub-rate: '-1' is not a size");
  ExpectWrong(Needed() + "region-size = '3M'\n", 4, "region-size: ");
  ExpectWrong(Needed() + "polling = 'never'\n", 4, "polling: ");
  ExpectWrong("pool = 'dram:'\nlisten = [\n  'shm:/tmp/a',\n  'tcp:b',\n]\n", 4, "listen: 'tcp:b' is not an address");
}

TEST_F(ConfigTest, InvalidTomlIsNamedWithItsLine) {
  ExpectWrong(Needed() + "shards 2\n", 4, "");
  ExpectWrong(Needed() + "polling = 'busy\n", 4, "");
  ExpectWrong(Needed() + "shards = 2\nshards = 2\n", 5, "");
  ExpectWrong(Needed() + "shards = 2 polling = 'busy'\n", 4, "");
  ExpectWrong(Needed() + "token-file = '\xff'\n", 4, "");
}

TEST_F(ConfigTest, AFileThatCannotBeReadIsRefused) {
  ExpectRefused(ServerWith({"--config", File()}), 2, File() + ": No such file or directory");
  ExpectRefused(ServerWith({"--config", Path("")}), 2, "Is a directory");
}

TEST_F(ConfigTest, PoolAndListenAreNeededFromSomewhere) {
  ExpectRefused(Check(""), 2, "--pool is required");
  ExpectRefused(Check("pool = 'dram:'\n"), 2, "--listen is required");
  ExpectFine(Check("pool = 'dram:'\n", {"--listen", Address()}));
}

TEST_F(ConfigTest, TokensAreNotPrinted) {
  const std::string token = "a-token-that-is-secret";
  WriteFile(Path("tokens"), token + "\n");
  const Ended checked = Check(Needed() + "token-file = '" + Path("tokens") + "'\n");
  ExpectLine(checked, "token-file = '" + Path("tokens") + "'");
  EXPECT_EQ(checked.out.find(token), std::string::npos);
  // Nor a token in a wrong place.
  for (const std::string& text : {"token = '" + token + "'\n", "shards = '" + token + "'\n"}) {
    EXPECT_EQ(Check(Needed() + text).err.find(token), std::string::npos) << text;
  }
}

TEST_F(ConfigTest, ExampleFileIsValid) {
  std::string text = ReadFile(ERDA_SOURCE_DIR "/tools/erda-server/erda-server.toml");
  ExpectLine(Check(text), "pool = '/var/lib/erda/pool'");
  // Its commented-out settings are right, too, and are all the other options.
  text = std::regex_replace(text, std::regex("(^|\n)#([a-z-]+ = )"), "$1$2");
  const Ended checked = Check(text);
  for (const auto& [key, value] : kValues) {
    EXPECT_NE(("\n" + checked.out).find("\n" + key + " = "), std::string::npos) << key << checked.err;
  }
}

}  // namespace
}  // namespace erda

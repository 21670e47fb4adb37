// erda-cli with arbitrary bytes and many keys: files, hexadecimal, mget, scan; ping; each exit code.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "paths.h"
#include "programs/fixture.h"

namespace erda {
namespace {

class CliKeysTest : public ProgramsTest {
 protected:
  static std::vector<std::string> Parts(const std::string& text, char end) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, end);) parts.push_back(part);
    return parts;
  }
  static std::vector<std::string> Sorted(const std::string& text, char end = '\n') {
    auto parts = Parts(text, end);
    std::ranges::sort(parts);
    return parts;
  }
};

// Returns every byte, including zero.
std::string AllBytes() {
  std::string all;
  for (int byte = 255; byte >= 0; --byte) all.push_back(static_cast<char>(byte));
  return all;
}

TEST_F(CliKeysTest, EveryByteOfKeysAndValuesComesThrough) {
  const auto server = StartServer();
  WriteFile(Path("key"), AllBytes());
  WriteFile(Path("value"), AllBytes() + AllBytes());
  ExpectFine(Cli({"put", "--key-file", Path("key"), "--value-file", Path("value")}));
  const auto raw = Cli({"get", "--raw", "--key-file", "-"}, AllBytes());
  ExpectFine(raw);
  EXPECT_EQ(raw.out, ReadFile(Path("value")));

  const std::string hex = Cli({"scan", "--key-hex"}).out;
  ASSERT_EQ(hex.size(), 513U) << hex;
  EXPECT_TRUE(hex.starts_with("fffefd")) << hex;
  EXPECT_EQ(Cli({"get", "--raw", "--key-hex", hex.substr(0, 512)}).out, raw.out);
  const auto json = nlohmann::json::parse(Cli({"mget", "--json", "--key-hex", "--file", "-"}, hex).out);
  EXPECT_TRUE(json["key_base64"].get<std::string>().starts_with("//79/Pv6")) << json;
  EXPECT_TRUE(json["key_base64"].get<std::string>().ends_with("AwIBAA==")) << json;
  EXPECT_FALSE(json.contains("value")) << json;
  EXPECT_EQ(json["value_base64"].get<std::string>().size(), 684U);

  EXPECT_EQ(Cli({"incr", "--key-hex", "00"}).out, "1\n");
  ExpectFine(Cli({"del", "--key-hex", "00", hex.substr(0, 512)}));
  EXPECT_EQ(Cli({"scan"}).out, "");
  StopServer(*server);
}

TEST_F(CliKeysTest, ValuesOfNoBytesAndOfEightMebibytesComeThrough) {
  const auto server = StartServerWith(
      {"--pool", "dram:", "--size", "256M", "--region-size", "32M", "--segment-size", "16M", "--listen", Address()});
  std::string large(8 << 20, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * i >> 5);
  for (const std::string& value : {std::string(), std::string(1, '\0'), large}) {
    WriteFile(Path("value"), value);
    ExpectFine(Cli({"put", "file", "--value-file", Path("value")}));
    ExpectFine(Cli({"put", "stdin", "--value-file", "-"}, value));
    for (const char* key : {"file", "stdin"}) {
      EXPECT_TRUE(Cli({"get", "--raw", key}).out == value) << key << value.size();
      ExpectFine(Cli({"get", key, "--out", Path("copy")}));
      EXPECT_TRUE(ReadFile(Path("copy")) == value) << key << value.size();
    }
  }
  StopServer(*server);
}

TEST_F(CliKeysTest, AFileOfGetIsThereWholeOrAsItWas) {
  const auto server = StartServer();
  WriteFile(Path("copy"), "before");
  ExpectRefused(Cli({"get", "key", "--out", Path("copy")}), 1, "not found");
  EXPECT_EQ(ReadFile(Path("copy")), "before");
  ExpectFine(Cli({"put", "key", "value"}));
  ExpectFine(Cli({"get", "key", "--out", Path("copy")}));
  EXPECT_EQ(ReadFile(Path("copy")), "value");
  EXPECT_EQ(std::filesystem::status(Path("copy")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(Path("copy")).parent_path())) {
    EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << entry.path();
  }
  ExpectRefused(Cli({"get", "key", "--out", Path("none") + "/copy"}), 5, "cannot write");
  ExpectRefused(Cli({"get", "key", "--out", "/dev/full"}), 5, "cannot write /dev/full");
  ExpectRefused(Cli({"get", "key", "--out", Path("copy"), "--with-version"}), 2, "--with-version");
  StopServer(*server);
}

TEST_F(CliKeysTest, MgetDistinguishesMissingFromEmpty) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "one", "first\tvalue\\\n"}));
  ExpectFine(Cli({"put", "empty", ""}));
  ExpectFine(Cli({"put", "gr\xc3\xbc\xc3\x9f", "\xff\x1b\xc2\x9b"}));
  const auto found = Cli({"mget", "one", "empty", "gr\xc3\xbc\xc3\x9f"});
  ExpectFine(found);
  EXPECT_EQ(found.out, "one\tfirst\\tvalue\\\\\\n\nempty\t\ngr\xc3\xbc\xc3\x9f\t\\xff\\x1b\\xc2\\x9b\n");

  const auto mixed = Cli({"mget", "nobody", "empty", "nobody\n"});
  EXPECT_EQ(mixed.code, 1);
  EXPECT_EQ(mixed.out, "nobody\nempty\t\nnobody\\n\n");
  EXPECT_EQ(mixed.err, "not found: 2 of 3 keys\n");
  const auto json = Parts(Cli({"mget", "--json", "nobody", "one"}).out, '\n');
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0], R"({"key":"nobody","value":null})");
  EXPECT_EQ(json[1], R"({"key":"one","value":"first\tvalue\\\n","version":1})");
  ExpectFine(Cli({"put", "--ttl", "3600000", "brief", "v"}));
  EXPECT_GT(nlohmann::json::parse(Cli({"mget", "--json", "brief"}).out)["expires_ms"].get<int64_t>(),
            1'700'000'000'000);
  StopServer(*server);
}

TEST_F(CliKeysTest, KeysComeFromArgumentsFilesAndStdin) {
  const auto server = StartServer();
  std::string lines;
  std::string nulls;
  std::string expected;
  for (int i = 0; i < 200; ++i) {  // More than are asked for at once.
    const std::string key = "key " + std::to_string(i);
    if (i < 3) {
      ExpectFine(Cli({"put", key, std::to_string(i)}));
    }
    expected += key + (i < 3 ? "\t" + std::to_string(i) : "") + "\n";
    lines += key + "\n";
    nulls += key + '\0';
  }
  lines.pop_back();  // The last newline may be missing.
  WriteFile(Path("keys"), lines);
  EXPECT_EQ(Cli({"mget", "--file", Path("keys")}).out, expected);
  EXPECT_EQ(Cli({"mget", "--file", "-"}, lines).out, expected);
  EXPECT_EQ(Cli({"mget", "-0", "--file", "-"}, nulls).out, expected);
  EXPECT_EQ(Cli({"mget", "first", "--file", Path("keys")}).out, "first\n" + expected);
  for (const std::string word : {"[a,b]", "{}", "[]", "%%", "a,b"}) {
    EXPECT_EQ(Cli({"mget", word, "--", "-x"}).out, word + "\n-x\n");
  }
  ExpectRefused(Cli({"mget", "--file", Path("none")}), 5, "cannot read " + Path("none"));
  ExpectRefused(Cli({"mget", ""}), 2, "a key has 1 to 1024 bytes");
  StopServer(*server);
}

TEST_F(CliKeysTest, DelTakesSeveralKeysAndReportsAbsentOnes) {
  const auto server = StartServer();
  for (const char* key : {"one", "two", "three", "[four,five]"}) ExpectFine(Cli({"put", key, "v"}));
  const auto some = Cli({"del", "one", "no\nbody", "two"});
  EXPECT_EQ(some.code, 1);
  EXPECT_EQ(some.out, "");
  EXPECT_EQ(some.err, "not found: no\\nbody\n");
  EXPECT_EQ(Sorted(Cli({"scan"}).out), (Words{"[four,five]", "three"}));
  ExpectFine(Cli({"del", "-0", "--file", "-"}, Cli({"scan", "-0"}).out));
  EXPECT_EQ(Cli({"scan"}).out, "");
  ExpectRefused(Cli({"del", "--if-version", "1", "one", "two"}), 2, "--if-version");
  StopServer(*server);
}

TEST_F(CliKeysTest, ScanPrintsAllKeys) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "user/1", "first"}));
  ExpectFine(Cli({"put", "user/2\n", ""}));
  ExpectFine(Cli({"put", "tmp\\", "third"}));
  EXPECT_EQ(Sorted(Cli({"scan"}).out), (Words{"tmp\\\\", "user/1", "user/2\\n"}));
  EXPECT_EQ(Sorted(Cli({"scan", "--values"}).out), (Words{"tmp\\\\\tthird", "user/1\tfirst", "user/2\\n\t"}));
  EXPECT_EQ(Sorted(Cli({"scan", "-0"}).out, '\0'), (Words{"tmp\\", "user/1", "user/2\n"}));
  EXPECT_EQ(Sorted(Cli({"scan", "--prefix", "user/", "--json", "--values"}).out),
            (Words{R"({"key":"user/1","value":"first","version":1})", R"({"key":"user/2\n","value":"","version":2})"}));
  EXPECT_EQ(Cli({"scan", "--json", "--prefix", "tmp"}).out, "{\"key\":\"tmp\\\\\"}\n");
  EXPECT_EQ(Sorted(Cli({"keys"}).out), (Words{"", "tmp\\", "user/1", "user/2"}));
  ExpectRefused(Cli({"scan", "-0", "--values"}), 2, "--null");
  ExpectRefused(Cli({"scan", "--limit", "0"}), 2, "--limit");
  ExpectRefused(Cli({"scan", "--cursor", "12345"}), 2, "cursor");
  StopServer(*server);
}

TEST_F(CliKeysTest, ALimitEndsAScanWithACursorToGoOnWith) {
  const auto server = StartServer();
  ASSERT_EQ(Ycsb({"--workload", "C", "--records", "3000", "--value-size", "16", "--operations", "1", "--quiet"}).code,
            0);
  const auto all = Sorted(Cli({"scan"}).out);
  ASSERT_EQ(all.size(), 3000U);
  for (const bool json : {false, true}) {
    Words keys;
    std::string cursor = "0";
    int pages = 0;
    while (!cursor.empty()) {
      Words command = {"scan", "--limit", "700", "--cursor", cursor};
      if (json) command.emplace_back("--json");
      const Ended page = Cli(command);
      ASSERT_EQ(page.code, 0) << page.err;
      auto lines = Parts(page.out, '\n');
      if (json) {
        EXPECT_EQ(page.err, "");
        const auto last = nlohmann::json::parse(lines.back())["cursor"];
        cursor = last.is_null() ? "" : std::to_string(last.get<uint64_t>());
        lines.pop_back();
        for (std::string& line : lines) line = nlohmann::json::parse(line)["key"];
      } else if (page.err.empty()) {
        cursor = "";
      } else {
        ASSERT_TRUE(page.err.starts_with("cursor ") && page.err.ends_with('\n')) << page.err;
        cursor = page.err.substr(7, page.err.size() - 8);
      }
      keys.insert(keys.end(), lines.begin(), lines.end());
      ++pages;
    }
    EXPECT_GE(pages, 3);
    EXPECT_LE(pages, 5);
    std::ranges::sort(keys);
    EXPECT_EQ(keys, all);
  }
  StopServer(*server);
}

TEST_F(CliKeysTest, PingAsksTheServerEachTime) {
  auto server = StartServer();
  const auto answered = Cli({"ping", "-n", "3", "--interval-ms", "0"});
  ExpectFine(answered);
  const auto lines = Parts(answered.out, '\n');
  ASSERT_EQ(lines.size(), 3U);
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.starts_with(Address() + ": request ") && line.ends_with(" us")) << line;
    EXPECT_NE(line.find(" us, get "), std::string::npos) << line;
  }
  EXPECT_EQ(Cli({"scan"}).out, "") << "it leaves nothing";

  // The server goes away meanwhile.
  Process pinging(
      Command("erda-cli", {"-a", Address(), "--timeout-ms", "500", "ping", "-n", "1000000", "--interval-ms", "1"}));
  ASSERT_TRUE(WaitUntil([&] { return pinging.out().ends_with('\n'); }));
  server->Signal(SIGKILL);
  EXPECT_EQ(server->Wait().code, 128 + SIGKILL);
  EXPECT_EQ(pinging.Wait().code, 3);
  ExpectRefused(Cli({"--timeout-ms", "200", "ping"}), 3, Address());
}

TEST_F(CliKeysTest, PingWithATokenThatMayOnlyReadConnectsInstead) {
  WriteFile(Path("tokens"), "a-token-of-a-reader read-only\n");
  WriteFile(Path("token"), "a-token-of-a-reader\n");
  for (const char* name : {"tokens", "token"}) {
    std::filesystem::permissions(Path(name), std::filesystem::perms::owner_read);
  }
  const auto server = StartServer({"--token-file", Path("tokens")});
  const auto answered = Cli({"--token-file", Path("token"), "ping"});
  ExpectFine(answered);
  EXPECT_TRUE(answered.out.starts_with(Address() + ": connect ")) << answered.out;
  StopServer(*server);
}

TEST_F(CliKeysTest, EachKindOfErrorHasItsExitCode) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "key", "value"}));
  EXPECT_EQ(Cli({"get", "nobody"}).code, 1);
  EXPECT_EQ(Cli({"mget", "key", "nobody"}).code, 1);
  ExpectRefused(Cli({"put", "key", "--value-file", "-"}, std::string(1 << 20, 'v')), 2, "bytes");
  ExpectRefused(Cli({"put", "--if-absent", "key", "v"}), 6, "version");
  ExpectRefused(Cli({"put", "key", "--value-file", Path("none")}), 5, "cannot read");
  server->Signal(SIGSTOP);
  EXPECT_EQ(Cli({"--timeout-ms", "300", "get", "key"}).code, 3);
  server->Signal(SIGCONT);
  StopServer(*server);

  WriteFile(Path("tokens"), "a-token-of-a-client\n");
  std::filesystem::permissions(Path("tokens"), std::filesystem::perms::owner_read);
  const auto guarded = StartServer({"--token-file", Path("tokens")});
  ExpectRefused(Cli({"get", "key"}), 7, "token");
  StopServer(*guarded);

  // The server has its largest number of clients.
  const auto full = StartServer({"--max-clients", "1"});
  const Process there(Command("erda-cli", {"-a", Address(), "ping", "-n", "2", "--interval-ms", "3600000"}));
  ASSERT_TRUE(WaitUntil([&] { return there.out().ends_with('\n'); }));
  ExpectRefused(Cli({"get", "key"}), 4, "clients");
}

TEST_F(CliKeysTest, TheAddressMayBeInTheEnvironment) {
  const auto server = StartServer();
  const std::string get = BinDir() + "/erda-cli ";
  const auto run = [&](const std::string& address, const std::string& words) {
    return Process({"/bin/sh", "-c", "ERDA_ADDRESS=" + address + " " + get + words}).Wait();
  };
  ExpectFine(run(Address(), "put key value"));
  EXPECT_EQ(run("shm:/nowhere", "-a " + Address() + " get key").out, "value\n") << "-a wins";
  ExpectRefused(run("shm:/nowhere", "get key"), 3, "shm:/nowhere");
  StopServer(*server);
}

TEST_F(CliKeysTest, AddressAndTokenMayBeInTheEnvironmentOrInAConfigurationFile) {
  const std::string file = Path(".config/erda/client.toml");
  const std::string home = file.substr(0, file.find("/.config"));
  WriteFile(Path("tokens"), "a-token-of-a-client\n");
  std::filesystem::permissions(Path("tokens"), std::filesystem::perms::owner_read);
  const auto server = StartServer({"--token-file", Path("tokens")});
  const auto run = [&](const std::string& environment, const std::string& words) {
    const std::string cli = " " + BinDir() + "/erda-cli --wait 0 ";
    return Process({"/bin/sh", "-c", "HOME=" + home + " " + environment + cli + words}).Wait();
  };
  const std::string address = "ERDA_ADDRESS=" + Address();
  ExpectFine(run(address + " ERDA_TOKEN_FILE=" + Path("tokens"), "put key value"));
  ExpectRefused(run(address, "get key"), 7, "token");
  ExpectRefused(run("", "get key"), 3, "shm:/run/erda/socket");

  std::filesystem::create_directories(Path(".config/erda"));
  WriteFile(file, "address = \"" + Address() + "\"\ntoken-file = \"" + Path("tokens") + "\"\n");
  EXPECT_EQ(run("", "get key").out, "value\n");
  EXPECT_EQ(run("ERDA_CLIENT_CONFIG=" + file + " HOME=/nowhere", "get key").out, "value\n");
  ExpectRefused(run("ERDA_ADDRESS=shm:/nowhere", "get key"), 3, "shm:/nowhere");
  ExpectRefused(run("", "-a shm:/elsewhere get key"), 3, "shm:/elsewhere");
  WriteFile(file, "\naddres = \"shm:/nowhere\"\n");
  ExpectRefused(run("", "get key"), 2, file + ":2: there is no key addres");
  ExpectRefused(run("ERDA_CLIENT_CONFIG=/none", "get key"), 2, "/none: ");
  StopServer(*server);
}

TEST_F(CliKeysTest, HelpOfEachCommandHasItsExitCodesAndAnExample) {
  const auto help = Run("erda-cli", {"--help"}).out;
  std::set<std::string> names;
  for (const std::string& line : Parts(help.substr(help.find("Subcommands:")), '\n')) {
    if (!line.starts_with("  ") || line.size() < 4 || line[2] == ' ') continue;
    names.insert(line.substr(2, line.find(' ', 2) - 2));
  }
  for (const char* name : {"get", "put", "del", "mget", "scan", "incr", "load", "dump", "stats", "clean", "ping"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  for (const std::string& name : names) {
    const auto of = Run("erda-cli", {name, "--help"});
    ExpectFine(of);
    EXPECT_NE(of.out.find("Exit codes: 0 done"), std::string::npos) << of.out;
    EXPECT_NE(of.out.find("Example"), std::string::npos) << of.out;
    EXPECT_NE(of.out.find("erda-cli " + name), std::string::npos) << of.out;
  }
}

}  // namespace
}  // namespace erda

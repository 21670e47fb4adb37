// erda-cli against a real erda-server.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "paths.h"
#include "programs/fixture.h"

namespace erda {
namespace {

class CliTest : public ProgramsTest {};

TEST_F(CliTest, KeyIsPutReadAndDeleted) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "greeting", "hello, world"}));
  auto got = Cli({"get", "greeting"});
  ExpectFine(got);
  EXPECT_EQ(got.out, "hello, world\n");

  ExpectFine(Cli({"put", "greeting", "hi"}));
  EXPECT_EQ(Cli({"get", "greeting"}).out, "hi\n");
  ExpectFine(Cli({"del", "greeting"}));
  EXPECT_EQ(Cli({"get", "greeting"}).code, 1);
  EXPECT_EQ(Cli({"del", "greeting"}).code, 1);
  StopServer(*server);
}

TEST_F(CliTest, NotFoundIsReportedAndHasItsExitCode) {
  const auto server = StartServer();
  ExpectRefused(Cli({"get", "nobody"}), 1, "not found");
  ExpectRefused(Cli({"del", "nobody"}), 1, "not found");
}

TEST_F(CliTest, EachAckAndPathStoresTheSameValue) {
  const auto server = StartServer();
  const std::string value(5000, 'x');
  for (const char* ack : {"placed", "persisted"}) {
    for (const char* path : {"auto", "inline", "reserve"}) {
      const std::string key = std::string(ack) + path;
      ExpectFine(Cli({"put", "--ack", ack, "--path", path, key, value}));
      EXPECT_EQ(Cli({"get", key}).out, value + "\n") << key;
    }
  }
}

TEST_F(CliTest, ValuesHoldAnyBytes) {
  const auto server = StartServer();
  std::string value;
  for (int i = 0; i < 100'000; ++i) value.push_back(static_cast<char>(i * 7 % 256));
  ExpectFine(Cli({"put", "bytes", "-"}, value));
  auto got = Cli({"get", "--raw", "bytes"});
  ExpectFine(got);
  EXPECT_EQ(got.out, value);

  ExpectFine(Cli({"put", "empty", ""}));
  EXPECT_EQ(Cli({"get", "--raw", "empty"}).out, "");
  EXPECT_EQ(Cli({"get", "empty"}).out, "\n");
  ExpectFine(Cli({"put", "empty too", "-"}, ""));
  EXPECT_EQ(Cli({"get", "empty too"}).out, "\n");
}

TEST_F(CliTest, KeysAndValuesMayLookLikeOptionsAndCommands) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "--", "-key", "--value"}));
  EXPECT_EQ(Cli({"get", "--", "-key"}).out, "--value\n");
  ExpectFine(Cli({"put", "get", "stats"}));
  EXPECT_EQ(Cli({"get", "get"}).out, "stats\n");
  for (const char* value : {"{}", "[1,2]", "\"quoted\"", "a=b", "%x", " ", "two\nlines"}) {
    ExpectFine(Cli({"put", "odd", value}));
    EXPECT_EQ(Cli({"get", "odd"}).out, std::string(value) + "\n");
  }
}

TEST_F(CliTest, ArgumentsOutOfTheLimitsAreRefusedWithTheLimit) {
  const auto server = StartServer();
  ExpectRefused(Cli({"put", std::string(1025, 'k'), "value"}), 2, "1024");
  ExpectRefused(Cli({"get", std::string(1025, 'k')}), 2, "1024");
  ExpectRefused(Cli({"get", ""}), 2, "erda-cli: ");
  ExpectRefused(Cli({"put", "key", "-"}, std::string(16 << 20, 'v')), 2, "erda-cli: ");
  ExpectRefused(Cli({"put", "--path", "inline", "key", "-"}, std::string(1 << 18, 'v')), 2, "erda-cli: ");
  ExpectFine(Cli({"put", std::string(1024, 'k'), "value"}));
  EXPECT_EQ(Cli({"get", std::string(1024, 'k')}).out, "value\n");
}

TEST_F(CliTest, BadUsageIsOneLineAndHasItsExitCode) {
  const std::string address = Address();
  const std::vector<Words> bad = {{"-a", address, "get"},
                                  {"-a", address, "get", "one", "two"},
                                  {"-a", address, "put", "key"},
                                  {"-a", address, "frobnicate", "key"},
                                  {"-a", address, "stats", "key"},
                                  {"-a", address, "--unknown", "get", "key"},
                                  {"-a", address, "--timeout-ms", "0", "get", "key"},
                                  {"-a", address, "--timeout-ms", "soon", "get", "key"},
                                  {"-a", address, "--ack", "maybe", "get", "key"},
                                  {"-a", address, "--path", "scenic", "get", "key"}};
  for (const Words& arguments : bad) ExpectRefused(Run("erda-cli", arguments), 2, "erda-cli: ");
}

TEST_F(CliTest, CommandLineWithoutACommandPrintsTheCommands) {
  for (const Words& arguments : {Words{}, Words{"-a", Address()}}) {
    const auto ended = Run("erda-cli", arguments);
    EXPECT_EQ(ended.code, 2);
    EXPECT_TRUE(ended.err.starts_with("erda-cli: a COMMAND is missing")) << ended.err;
    for (const char* name : {"  get ", "  put ", "  incr ", "  ping "}) {
      EXPECT_NE(ended.err.find(name), std::string::npos) << ended.err;
    }
  }
}

TEST_F(CliTest, UnknownCommandIsNamed) {
  ExpectRefused(Run("erda-cli", {"frobnicate", "key"}), 2, "there is no command frobnicate");
  ExpectRefused(Cli({"frobnicate", "key"}), 2, "there is no command frobnicate");
}

TEST_F(CliTest, CommandWaitsForAServerThatStarts) {
  Process put(Command("erda-cli", {"-a", Address(), "--wait", "50s", "put", "key", "value"}));
  Process ping(Command("erda-cli", {"-a", Address(), "ping", "--wait", "50s"}));
  const auto server = StartServer();
  ExpectFine(put.Wait());
  EXPECT_EQ(ping.Wait().code, 0);
  EXPECT_EQ(Cli({"get", "key"}).out, "value\n");
  StopServer(*server);
}

TEST_F(CliTest, WaitHasAnEndAndThenSaysHowToWaitLonger) {
  ExpectRefused(Cli({"--wait", "30ms", "get", "key"}), 3, "waited 0.03 s; --wait waits longer");
  const auto not_waited = Cli({"ping"});
  ExpectRefused(not_waited, 3, Address());
  EXPECT_EQ(not_waited.err.find("waited"), std::string::npos) << not_waited.err;
  for (const char* time : {"soon", "-1s", "1h", "1.5s", "86401", ""}) {
    ExpectRefused(Cli({"--wait", time, "get", "key"}), 2, "--wait");
  }
}

TEST_F(CliTest, NumberIsPutPrintedAndIncremented) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "--number", "visits", "41"}));
  EXPECT_EQ(Cli({"incr", "visits"}).out, "42\n");
  EXPECT_EQ(Cli({"get", "--number", "visits"}).out, "42\n");
  EXPECT_EQ(Cli({"get", "--raw", "visits"}).out, std::string("\x2a\0\0\0\0\0\0\0", 8));
  ExpectFine(Cli({"put", "--number", "least", "--", "-9223372036854775808"}));
  EXPECT_EQ(Cli({"get", "--number", "least"}).out, "-9223372036854775808\n");
  ExpectFine(Cli({"put", "--number", "visits", "--value-file", "-"}, "7\n"));
  EXPECT_EQ(Cli({"get", "--number", "visits"}).out, "7\n");
  for (const char* text : {"many", "1.5", "9223372036854775808", "", "-"}) {
    ExpectRefused(Cli({"put", "--number", "visits", "--", text}), 2, "whole number");
  }
  ExpectFine(Cli({"put", "text", "hello"}));
  ExpectRefused(Cli({"get", "--number", "text"}), 2, "the value of text has 5 bytes, and a number has 8");
}

TEST_F(CliTest, IncrementOfATextSaysHowItBecomesANumber) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "visits", "41"}));
  ExpectRefused(Cli({"incr", "visits"}), 2, "make it one: erda-cli put --number visits 41");
  EXPECT_EQ(Cli({"get", "visits"}).out, "41\n");
  ExpectFine(Cli({"put", "name", "erda"}));
  ExpectRefused(Cli({"incr", "name"}), 2, "the value of name is 4 bytes, not a number of 8 bytes");
}

TEST_F(CliTest, ValueThatIsTooLargeIsRefusedBeforeAllOfItIsRead) {
  const auto server = StartServer();
  ExpectRefused(Cli({"put", "key", "/dev/zero", "--value-file"}), 2, "larger --segment-size");
}

TEST_F(CliTest, DamagedValueIsReportedWithItsKey) {
  auto server = StartServer();
  ExpectFine(Cli({"put", "a key\n", "the value of this key, which is damaged"}));
  StopServer(*server);
  Damage("the value of this key");
  server = StartServer();
  ExpectRefused(Cli({"get", "a key\n"}), 5, "key a key\\n: ");
}

TEST_F(CliTest, BadAddressIsRefusedAndNamed) {
  for (const std::string address : {"nowhere", "tcp:localhost:1", "shm:", ""}) {
    ExpectRefused(Run("erda-cli", {"-a", address, "get", "key"}), 2, address);
  }
  const std::string long_address = "shm:/" + std::string(200, 'x');
  ExpectRefused(Run("erda-cli", {"-a", long_address, "get", "key"}), 2, long_address);
}

TEST_F(CliTest, AddressNobodyListensOnIsUnavailable) {
  ExpectRefused(Cli({"--timeout-ms", "500", "get", "key"}), 3, Address());
  // The leftovers of a killed server.
  auto server = StartServer();
  server->Signal(SIGKILL);
  EXPECT_EQ(server->Wait().code, 128 + SIGKILL);
  ExpectRefused(Cli({"--timeout-ms", "500", "get", "key"}), 3, Address());
}

TEST_F(CliTest, ServerThatDoesNotAnswerIsATimeout) {
  const auto server = StartServer();
  server->Signal(SIGSTOP);
  ExpectRefused(Cli({"--timeout-ms", "300", "put", "key", "value"}), 3, Address());
  server->Signal(SIGCONT);
  ExpectFine(Cli({"put", "key", "value"}));
  StopServer(*server);
}

TEST_F(CliTest, StatsAreNamesAndValues) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "key", "value"}));
  const auto text = Cli({"stats"});
  ExpectFine(text);
  const auto json = Cli({"stats", "--json"});
  ExpectFine(json);
  const auto parsed = nlohmann::json::parse(json.out, nullptr, false);
  ASSERT_TRUE(parsed.is_object()) << json.out;
  EXPECT_FALSE(parsed.empty());
  for (const auto& [name, value] : parsed.items()) {
    EXPECT_NE(text.out.find(name + "  "), std::string::npos) << name;
    EXPECT_TRUE(value.is_string() || value.is_number_unsigned()) << name;
  }
}

TEST_F(CliTest, ConditionsAreAboutVersions) {
  const auto server = StartServer();
  const auto put = Cli({"put", "--if-absent", "--with-version", "key", "v1"});
  ExpectFine(put);
  const std::string version = put.out.substr(0, put.out.size() - 1);
  EXPECT_EQ(Cli({"get", "--with-version", "key"}).out, version + " v1\n");
  ExpectRefused(Cli({"put", "--if-absent", "key", "v2"}), 6, "the key has version " + version);
  ExpectRefused(Cli({"put", "--if-version", version + "0", "key", "v2"}), 6, "version " + version);
  EXPECT_EQ(Cli({"put", "key", "--if-version", version, "v2"}).out, "");
  EXPECT_EQ(Cli({"get", "key"}).out, "v2\n");
  ExpectRefused(Cli({"del", "--if-version", version, "key"}), 6, "version");
  const std::string now = Cli({"get", "--with-version", "key"}).out;
  ExpectFine(Cli({"del", "--if-version", now.substr(0, now.find(' ')), "key"}));
  ExpectRefused(Cli({"del", "--if-version", version, "key"}), 6, "absent");
  ExpectRefused(Cli({"put", "--if-absent", "--if-version", "1", "key", "v"}), 2, "if-");
  ExpectRefused(Cli({"put", "--if-version", "-1", "key", "v"}), 2, "if-version");
  StopServer(*server);
}

TEST_F(CliTest, ValuesExpire) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "key", "v"}));
  EXPECT_EQ(Cli({"get", "--with-expiry", "key"}).out, "0 v\n");
  ExpectFine(Cli({"put", "--ttl", "3600000", "key", "v"}));
  const std::string text = Cli({"get", "--with-expiry", "key"}).out;
  EXPECT_GT(std::stoull(text), 1'700'000'000'000U) << text;
  EXPECT_EQ(text.substr(text.find(' ')), " v\n");
  ExpectFine(Cli({"put", "--ttl", "1", "brief", "v"}));
  while (Cli({"get", "brief"}).code == 0) {
  }
  EXPECT_EQ(Cli({"get", "brief"}).code, 1);
  ExpectRefused(Cli({"put", "--ttl", "0", "key", "v"}), 2, "ttl");
  StopServer(*server);
}

TEST_F(CliTest, IncrementsPrintTheSum) {
  const auto server = StartServer();
  EXPECT_EQ(Cli({"incr", "visits"}).out, "1\n");
  EXPECT_EQ(Cli({"incr", "visits", "41"}).out, "42\n");
  EXPECT_EQ(Cli({"incr", "visits", "--", "-50"}).out, "-8\n");
  EXPECT_EQ(Cli({"get", "--raw", "visits"}).out, std::string("\xf8\xff\xff\xff\xff\xff\xff\xff"));
  ExpectFine(Cli({"put", "text", "12345"}));
  ExpectRefused(Cli({"incr", "text"}), 2, "8 bytes");
  // A text of 8 bytes is a number like any other. The sum of "00000001" and 1 is another text.
  ExpectFine(Cli({"put", "digits", "00000001"}));
  ExpectFine(Cli({"incr", "digits"}));
  EXPECT_EQ(Cli({"get", "digits"}).out, "10000001\n");
  ExpectRefused(Cli({"incr", "visits", "many"}), 2, "DELTA");
  StopServer(*server);
}

TEST_F(CliTest, OutputThatCannotBeWrittenIsAnError) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "key", "value"}));
  const std::string get = BinDir() + "/erda-cli -a " + Address() + " get key > /dev/full";
  ExpectRefused(Process({"/bin/sh", "-c", get}).Wait(), 5, "stdout");
}

TEST_F(CliTest, HelpAndVersionNeedNoServer) {
  for (const char* program : {"erda-server", "erda-cli", "erda-inspect", "erda-ycsb"}) {
    const auto help = Run(program, {"--help"});
    ExpectFine(help);
    EXPECT_NE(help.out.find("Usage: "), std::string::npos) << help.out;
    EXPECT_NE(help.out.find("Exit codes: "), std::string::npos) << help.out;
    EXPECT_EQ(Run(program, {"-h"}).out, help.out);
    const auto version = Run(program, {"--version"});
    ExpectFine(version);
    EXPECT_TRUE(version.out.starts_with(std::string(program) + " ")) << version.out;
  }
}

}  // namespace
}  // namespace erda

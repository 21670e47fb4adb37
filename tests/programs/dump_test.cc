// erda-cli dump and load, and the files between them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "programs/fixture.h"
#include "tools/shared/dump_file.h"

namespace erda {
namespace {

using tools::DumpReader;
using tools::DumpRecord;
using tools::DumpWriter;

// --- The format

// Returns the bytes of the writer, in memory.
template <class Body>
std::string Written(Body&& body) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* const file = open_memstream(&text, &size);
  body(file);
  std::fclose(file);
  std::string bytes(text, size);
  std::free(text);
  return bytes;
}
std::string Sample() {
  return Written([](std::FILE* file) {
    DumpWriter writer(file);
    EXPECT_TRUE(writer.Begin().ok());
    EXPECT_TRUE(writer.Add("one", "first value", 0).ok());
    EXPECT_TRUE(writer.Add("two", "", 1'234'567'890'123).ok());
    EXPECT_TRUE(writer.End(7).ok());
  });
}

// All records, and the status of the end.
struct Seen {
  std::vector<DumpRecord> records;
  uint64_t damaged = 0;
  Status status;
};
Seen ReadAll(const std::string& bytes) {
  Seen seen;
  std::FILE* const file = tmpfile();
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::rewind(file);
  DumpReader reader(file);
  seen.status = reader.Begin();
  while (seen.status.ok()) {
    auto next = reader.Next();
    seen.status = next.status();
    if (!next.ok() || !*next) break;
    seen.records.push_back(**std::move(next));
  }
  seen.damaged = reader.damaged();
  std::fclose(file);
  return seen;
}

TEST(DumpFile, DumpFileHasItsDocumentedBytes) {
  std::string expected = "ERDADUMP";
  const auto number = [&](uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) expected.push_back(static_cast<char>(value >> (8 * i)));
  };
  // A crc stands before the bytes that it covers, or after them.
  const auto crc_of = [](std::string_view bytes) { return Crc32cByTable(0, AsBytes(bytes)); };
  number(1, 4);
  number(crc_of(expected), 4);
  const auto record = [&](uint8_t kind, uint64_t at, uint64_t deadline, std::string_view key, std::string_view value) {
    std::string before = std::exchange(expected, "");
    number(kind, 1);
    number(0, 1);
    number(key.size(), 2);
    number(value.size(), 4);
    number(0, 4);
    number(at, 8);
    number(deadline, 8);
    expected.append(key).append(value);
    const std::string covered = std::exchange(expected, std::move(before));
    number(crc_of(covered), 4);
    expected += covered;
  };
  record(1, 0, 0, "one", "first value");
  record(1, 1, 1'234'567'890'123, "two", "");
  record(2, 2, 7, "", "");
  EXPECT_EQ(Sample(), expected);
}

TEST(DumpFile, ReaderReturnsTheWrittenRecords) {
  const Seen seen = ReadAll(Sample());
  EXPECT_TRUE(seen.status.ok()) << seen.status.ToString();
  ASSERT_EQ(seen.records.size(), 2U);
  EXPECT_EQ(seen.records[0].key, "one");
  EXPECT_EQ(seen.records[0].value, "first value");
  EXPECT_EQ(seen.records[0].deadline, 0U);
  EXPECT_EQ(seen.records[1].key, "two");
  EXPECT_EQ(seen.records[1].value, "");
  EXPECT_EQ(seen.records[1].deadline, 1'234'567'890'123U);
  EXPECT_EQ(seen.damaged, 7U);
}

TEST(DumpFile, EachFlippedBitIsFound) {
  const std::string bytes = Sample();
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const Seen seen = ReadAll(flipped);
    EXPECT_EQ(seen.status.code(), Code::kCorruption) << "bit " << bit;
    for (const DumpRecord& record : seen.records) EXPECT_TRUE(record.key == "one" || record.key == "two") << bit;
  }
}

TEST(DumpFile, EachEndThatIsTooEarlyOrTooLateIsFound) {
  const std::string bytes = Sample();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(ReadAll(bytes.substr(0, size)).status.code(), Code::kCorruption) << size;
  }
  EXPECT_EQ(ReadAll(bytes + "x").status.code(), Code::kCorruption);
  EXPECT_EQ(ReadAll(bytes + bytes).status.code(), Code::kCorruption);
}

TEST(DumpFile, MissingAndMisplacedRecordsAreFound) {
  const std::string bytes = Sample();
  constexpr size_t kFirst = 16;
  constexpr size_t kSecond = kFirst + 32 + 3 + 11;
  constexpr size_t kEnd = kSecond + 32 + 3;
  const std::string header = bytes.substr(0, kFirst);
  const std::string first = bytes.substr(kFirst, kSecond - kFirst);
  const std::string second = bytes.substr(kSecond, kEnd - kSecond);
  const std::string end = bytes.substr(kEnd);
  EXPECT_TRUE(ReadAll(header + first + second + end).status.ok());
  for (const std::string& wrong : {header + first + end, header + second + end, header + end,
                                   header + second + first + end, header + first + first + second + end}) {
    EXPECT_EQ(ReadAll(wrong).status.code(), Code::kCorruption);
  }
}

// --- The commands

class DumpTest : public ProgramsTest {
 protected:
  // A second server, with a pool of another geometry.
  [[nodiscard]] std::string OtherAddress() const { return "shm:" + Path("other-socket"); }
  [[nodiscard]] std::unique_ptr<Process> StartOther() const {
    return StartServerWith({"--pool", Path("other-pool"), "--listen", OtherAddress(), "--size", "32M", "--shards", "2",
                            "--index-entries", "256"});
  }
  [[nodiscard]] Ended OtherCli(Words arguments, std::string_view input = "") const {
    arguments.insert(arguments.begin(), {"-a", OtherAddress()});
    return Run("erda-cli", arguments, input);
  }
};

TEST_F(DumpTest, LoadIntoAnotherGeometryRestoresTheDump) {
  const auto server = StartServer();
  ExpectFine(Ycsb({"-w", "C", "--records", "3000", "--operations", "10", "--value-size", "200"}));
  ExpectFine(Cli({"put", "large", "-"}, std::string(60'000, 'x')));
  ExpectFine(Cli({"put", "empty", ""}));
  ExpectFine(Cli({"put", "--ttl", "100000000", "expires", "later"}));
  const std::string expires = Cli({"get", "--with-expiry", "expires"}).out;
  auto dumped = Cli({"dump", Path("dump")});
  ExpectFine(dumped);
  EXPECT_EQ(dumped.out.find("keys 3003, bytes "), 0U) << dumped.out;
  EXPECT_EQ(dumped.out, "keys 3003, bytes " + std::to_string(ReadFile(Path("dump")).size()) + "\n");

  const auto other = StartOther();
  const auto loaded = OtherCli({"load", Path("dump")});
  ExpectFine(loaded);
  EXPECT_EQ(loaded.out, "keys 3003\n");
  EXPECT_EQ(OtherCli({"get", "large"}).out, std::string(60'000, 'x') + "\n");
  EXPECT_EQ(OtherCli({"get", "empty"}).out, "\n");
  // The deadline is the same, except for the milliseconds of the load by another clock.
  const std::string loaded_expires = OtherCli({"get", "--with-expiry", "expires"}).out;
  EXPECT_EQ(loaded_expires.substr(loaded_expires.find(' ')), " later\n");
  const int64_t apart = std::stoll(loaded_expires) - std::stoll(expires);
  EXPECT_LT(std::abs(apart), 60'000) << expires << loaded_expires;

  // The same keys and values: a dump of the copy differs only in the order and the deadline.
  const auto sorted = [](const std::string& path) {
    std::vector<std::pair<std::string, std::string>> all;
    for (const DumpRecord& record : ReadAll(ReadFile(path)).records) all.emplace_back(record.key, record.value);
    std::ranges::sort(all);
    return all;
  };
  ExpectFine(OtherCli({"dump", Path("again")}));
  EXPECT_TRUE(sorted(Path("again")) == sorted(Path("dump")));
}

TEST_F(DumpTest, KeysArePrinted) {
  const auto server = StartServer();
  EXPECT_EQ(Cli({"keys"}).out, "");
  ExpectFine(Cli({"put", "a", "1"}));
  ExpectFine(Cli({"put", "large", "-"}, std::string(60'000, 'x')));
  ExpectFine(Cli({"put", "b", "2"}));
  ExpectFine(Cli({"del", "b"}));
  const auto keys = Cli({"keys"});
  ExpectFine(keys);
  EXPECT_TRUE(keys.out == "a\nlarge\n" || keys.out == "large\na\n") << keys.out;
}

TEST_F(DumpTest, DumpGoesThroughAPipe) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "a", "1"}));
  ExpectFine(Cli({"put", "b", "2"}));
  const auto dumped = Cli({"dump", "-"});
  EXPECT_EQ(dumped.code, 0);
  EXPECT_NE(dumped.err.find("keys 2, bytes"), std::string::npos) << dumped.err;
  const auto other = StartOther();
  const auto loaded = OtherCli({"load", "-"}, dumped.out);
  ExpectFine(loaded);
  EXPECT_EQ(loaded.out, "keys 2\n");
  EXPECT_EQ(OtherCli({"get", "b"}).out, "2\n");
}

TEST_F(DumpTest, LoadReplacesOrKeepsExistingKeys) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "a", "1"}));
  ExpectFine(Cli({"put", "b", "2"}));
  ExpectFine(Cli({"dump", Path("dump")}));
  ExpectFine(Cli({"put", "a", "new"}));
  ExpectFine(Cli({"del", "b"}));
  const auto left = Cli({"load", "--if-absent", Path("dump")});
  ExpectFine(left);
  EXPECT_EQ(left.out, "keys 1, left as they were 1\n");
  EXPECT_EQ(Cli({"get", "a"}).out, "new\n");
  EXPECT_EQ(Cli({"get", "b"}).out, "2\n");
  ExpectFine(Cli({"load", Path("dump")}));
  EXPECT_EQ(Cli({"get", "a"}).out, "1\n");
}

TEST_F(DumpTest, ExpiredKeysAreNotLoaded) {
  const auto server = StartServer();
  WriteFile(Path("dump"), Written([](std::FILE* file) {
              DumpWriter writer(file);
              EXPECT_TRUE(writer.Begin().ok());
              EXPECT_TRUE(writer.Add("over", "value", 1'000).ok());
              EXPECT_TRUE(writer.Add("lives", "value", uint64_t{1} << 42).ok());
              EXPECT_TRUE(writer.End(0).ok());
            }));
  const auto loaded = Cli({"load", Path("dump")});
  ExpectFine(loaded);
  EXPECT_EQ(loaded.out, "keys 1, expired 1\n");
  EXPECT_EQ(Cli({"get", "over"}).code, 1);
  EXPECT_EQ(Cli({"get", "--with-expiry", "lives"}).out.find(std::to_string(uint64_t{1} << 42).substr(0, 8)), 0U);
}

// The longest time to live, and a deadline that only a file can have.
TEST_F(DumpTest, DeadlinesThatAreFarAheadAreKept) {
  const auto server = StartServer();
  for (const char* ttl : {"281474976710656", "10000000000000"}) {
    ExpectFine(Cli({"put", "--ttl", ttl, "key", "value"}));
    const int64_t before = std::stoll(Cli({"get", "--with-expiry", "key"}).out);
    ExpectFine(Cli({"dump", Path("dump")}));
    ExpectFine(Cli({"del", "key"}));
    const auto loaded = Cli({"load", Path("dump")});
    ExpectFine(loaded);
    EXPECT_EQ(loaded.out, "keys 1\n") << ttl;
    EXPECT_LT(std::abs(std::stoll(Cli({"get", "--with-expiry", "key"}).out) - before), 60'000) << ttl;
  }
  WriteFile(Path("dump"), Written([](std::FILE* file) {
              DumpWriter writer(file);
              EXPECT_TRUE(writer.Begin().ok());
              EXPECT_TRUE(writer.Add("key", "later", UINT64_MAX).ok());
              EXPECT_TRUE(writer.End(0).ok());
            }));
  ExpectFine(Cli({"load", Path("dump")}));
  EXPECT_EQ(Cli({"get", "key"}).out, "later\n");
}

// A loader that waits for the rest of the dump has finished its puts.
TEST_F(DumpTest, LoadFinishesItsPutsBeforeItWaitsForMore) {
  const auto server = StartServer();
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  Process load(Command("erda-cli", {"-a", Address(), "--path", "reserve", "load", Path("pipe")}));
  std::FILE* const pipe = std::fopen(Path("pipe").c_str(), "w");
  ASSERT_NE(pipe, nullptr);
  const std::string sample = Sample();
  const auto write = [&](std::string_view bytes) {
    EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), pipe), bytes.size());
    std::fflush(pipe);
  };
  constexpr size_t kPart = 16 + 32 + 3 + 11 + 5;  // The first record, and five bytes of the second.
  write(std::string_view(sample).substr(0, kPart));
  EXPECT_TRUE(WaitUntil([&] { return Cli({"get", "one"}).out == "first value\n"; }));
  ExpectFine(Cli({"del", "one"}));
  write(std::string_view(sample).substr(kPart));
  std::fclose(pipe);
  EXPECT_EQ(load.Wait().code, 5) << "7 keys were damaged";
  EXPECT_EQ(Cli({"get", "one"}).code, 1);
}

TEST_F(DumpTest, FullMediumIsReported) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "a", "1"}));
  const std::string command = Command("erda-cli", {})[0] + " -a " + Address() + " dump - > /dev/full";
  const auto to_stdout = Process({"/bin/sh", "-c", "exec " + command}).Wait();
  EXPECT_EQ(to_stdout.code, 5);
  EXPECT_NE(to_stdout.err.find("No space left"), std::string::npos) << to_stdout.err;
  EXPECT_EQ(Cli({"dump", "/dev/full"}).code, 5);
}

TEST_F(DumpTest, DamagedDumpAndOtherFilesAreRefused) {
  const auto server = StartServer();
  const auto refused = [&](const std::string& bytes, const std::string& words) {
    WriteFile(Path("dump"), bytes);
    const auto ended = Cli({"load", Path("dump")});
    EXPECT_EQ(ended.code, 5);
    EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
    return ended.out;
  };
  const std::string sample = Sample();
  EXPECT_EQ(refused("something else altogether", "not a dump"), "keys 0\n");
  EXPECT_EQ(refused("", "ends in its header"), "keys 0\n");
  EXPECT_EQ(refused(sample.substr(0, sample.size() - 1), "ends in record 2"), "keys 1, expired 1\n");
  EXPECT_EQ(Cli({"get", "one"}).out, "first value\n");  // Earlier records stay.
  std::string flipped = sample;
  flipped[60] ^= 1;
  EXPECT_EQ(refused(flipped, "record 0 does not verify"), "keys 0\n");
  EXPECT_EQ(refused(sample, "the dump lacks 7 keys"), "keys 1, expired 1\n");
  const auto missing = Cli({"load", Path("nothing")});
  ExpectRefused(missing, 5, "cannot read");
}

// A value that the other pool cannot take; and a pool that becomes full.
TEST_F(DumpTest, RefusedPutIsReportedWithItsKey) {
  const auto server = StartServer();
  ExpectFine(Cli({"put", "large", "-"}, std::string(60'000, 'x')));
  ExpectFine(Cli({"dump", Path("dump")}));
  const auto small = StartServerWith({"--pool", Path("other-pool"), "--listen", OtherAddress(), "--size", "8M"});
  const auto loaded = OtherCli({"load", Path("dump")});
  EXPECT_EQ(loaded.code, 2) << loaded.err;
  EXPECT_NE(loaded.err.find("key large: "), std::string::npos) << loaded.err;
}

// The file gets its name only when it is whole.
TEST_F(DumpTest, EarlierFileStaysUntilTheDumpIsWhole) {
  WriteFile(Path("dump"), "old");
  const auto nobody = Cli({"dump", Path("dump")});
  EXPECT_EQ(nobody.code, 3);
  EXPECT_EQ(ReadFile(Path("dump")), "old");
  const auto server = StartServer();
  ExpectFine(Cli({"put", "a", "1"}));
  EXPECT_EQ(Cli({"dump", Path("no/folder")}).code, 5);
  ExpectFine(Cli({"dump", Path("dump")}));
  EXPECT_EQ(ReadAll(ReadFile(Path("dump"))).records.size(), 1U);
  // It is the user's alone, it is at the target of the link, and nothing else is left.
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(Path("dump")).permissions(), perms::owner_read | perms::owner_write);
  std::filesystem::create_directory(Path("elsewhere"));
  std::filesystem::create_symlink(Path("elsewhere/dump"), Path("link"));
  WriteFile(Path("elsewhere/dump"), "old");
  ExpectFine(Cli({"dump", Path("link")}));
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_EQ(ReadAll(ReadFile(Path("elsewhere/dump"))).records.size(), 1U);
  for (const auto& each : std::filesystem::recursive_directory_iterator(Path("."))) {
    EXPECT_EQ(each.path().string().find(".part"), std::string::npos) << each.path();
  }
  ExpectFine(Cli({"dump", "/dev/null"}));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

// One key of three is damaged. The others are in the dump, which counts the damaged one.
TEST_F(DumpTest, DamagedKeysAreCounted) {
  const std::string value = "a value that is looked for in the pool's file";
  {
    const auto server = StartServer();
    for (const char* key : {"a", "b", "c"}) ExpectFine(Cli({"put", key, value + key}));
    StopServer(*server);
  }
  std::string pool = ReadFile(Pool());
  const size_t at = pool.find(value + "b");
  ASSERT_NE(at, std::string::npos);
  pool[at] = 'X';
  WriteFile(Pool(), pool);
  const auto server = StartServer();
  const auto dumped = Cli({"dump", Path("dump")});
  EXPECT_EQ(dumped.code, 5);
  EXPECT_NE(dumped.err.find("the dump lacks 1 keys"), std::string::npos) << dumped.err;
  const Seen seen = ReadAll(ReadFile(Path("dump")));
  EXPECT_TRUE(seen.status.ok());
  EXPECT_EQ(seen.records.size(), 2U);
  EXPECT_EQ(seen.damaged, 1U);
}

}  // namespace
}  // namespace erda

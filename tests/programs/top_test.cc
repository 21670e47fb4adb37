// The lines of erda-cli top for two readings. Its use of a terminal is tested in tests/tools/top_test.py.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "erda/activity.h"
#include "tools/erda-cli/interval.h"

namespace erda::cli {
namespace {

using Words = std::vector<std::string>;

class TopTest : public testing::Test {
 protected:
  // Returns a reading at this number of seconds after some moment.
  static Reading At(double seconds, const std::string& server_id = "7") {
    Reading reading;
    reading.at = std::chrono::steady_clock::time_point() +
                 std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
    reading.info = {{"server_id", server_id}, {"shards", "2"}};
    reading.activity.operations = {OfKind("put_inline"), OfKind("delete")};
    reading.activity.fabrics = {ByFabric("shm")};
    return reading;
  }
  static OperationStats OfKind(const std::string& kind) {
    OperationStats operation;
    operation.kind = kind;
    return operation;
  }
  static FabricStats ByFabric(const std::string& scheme, uint64_t connections = 0, uint64_t requests = 0,
                              uint64_t refused = 0, uint64_t violations = 0) {
    return {scheme, "", connections, requests, refused, violations};
  }
  static void Count(Reading& reading, Code code, uint64_t n, size_t bucket, size_t kind = 0) {
    OperationStats& operation = reading.activity.operations[kind];
    operation.outcomes[static_cast<size_t>(code)] += n;
    operation.time.counts[bucket] += n;
  }
  // Returns the words of the line that begins with this one.
  static std::optional<Words> Line(const std::vector<std::string>& lines, const std::string& first) {
    for (const std::string& line : lines) {
      std::istringstream in(line);
      Words words;
      for (std::string word; in >> word;) words.push_back(word);
      if (!words.empty() && words[0] == first) return words;
    }
    return std::nullopt;
  }
  static bool Has(const std::vector<std::string>& lines, const std::string& text) {
    for (const std::string& line : lines) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  }
};

TEST_F(TopTest, FirstReadingCoversAllSinceTheStart) {
  Reading now = At(100);
  Count(now, Code::kOk, 90, 2);
  Count(now, Code::kConflict, 10, 2);
  const auto lines = LinesOf(nullptr, now);
  EXPECT_EQ(lines.front(), "Since the server's start");
  EXPECT_EQ(Line(lines, "requests"), (Words{"requests", "in", "all", "not", "ok", "p50", "p99", "p99.9"}));
  EXPECT_EQ(Line(lines, "put_inline"), (Words{"put_inline", "100", "10", "0.8", "us", "1.0", "us", "1.0", "us"}));
}

TEST_F(TopTest, LaterReadingsCoverTheTimeBetween) {
  Reading before = At(100);
  Count(before, Code::kOk, 1'000'000, 20);
  Reading now = before;
  now.at += std::chrono::milliseconds(2500);
  Count(now, Code::kOk, 400, 0);
  Count(now, Code::kNotFound, 100, 0);
  const auto lines = LinesOf(&before, now);
  EXPECT_EQ(lines.front(), "In the last 2.5 s");
  // The slow ones before are not counted.
  EXPECT_EQ(Line(lines, "put_inline"), (Words{"put_inline", "200", "40", "0.1", "us", "0.3", "us", "0.3", "us"}));
}

TEST_F(TopTest, WithoutRequestsThereAreNoTimes) {
  Reading before = At(100);
  Count(before, Code::kOk, 5, 3);
  Reading now = before;
  now.at += std::chrono::seconds(1);
  EXPECT_EQ(Line(LinesOf(&before, now), "put_inline"), (Words{"put_inline", "0", "0", "-", "-", "-"}));
}

TEST_F(TopTest, JournalHasALineIfThereIsOne) {
  Reading before = At(100);
  EXPECT_FALSE(Line(LinesOf(nullptr, before), "journal"));
  before.info["journal_ring_bytes"] = "1000";
  before.info["journal_bytes_written"] = "1024";
  EXPECT_TRUE(Has(LinesOf(nullptr, before), "no checkpoint yet"));
  Reading now = before;
  now.at += std::chrono::seconds(2);
  now.date = std::chrono::system_clock::time_point(std::chrono::seconds(1009));
  now.info["journal_bytes_written"] = "5120";
  now.info["journal_flushes"] = "8";
  now.info["journal_stream_bytes"] = "900";
  now.info["journal_held_bytes"] = "800";
  now.info["journal_ring_used"] = "250";
  now.info["journal_checkpoint_at_ms"] = "1000000";
  EXPECT_TRUE(Has(LinesOf(&before, now),
                  "journal   2.0 KiB/s written, 4/s flushes, 100 B not held; ring 25 % used; checkpoint 9 s ago"));
  now.info["journals_failed"] = "1";
  const auto line = [&] { return LinesOf(&before, now); };
  EXPECT_TRUE(Has(line(), "9 s ago; its disk has failed"));
  EXPECT_FALSE(Has(line(), "has failed:")) << "a server of an earlier version does not tell the error";
  now.info["journal_error_number"] = std::to_string(EIO);
  EXPECT_TRUE(Has(line(), "9 s ago; its disk has failed: Input/output error"));
}

TEST_F(TopTest, KindsWithoutRequestsAreLeftOut) {
  Reading now = At(100);
  Count(now, Code::kOk, 1, 3);
  const auto lines = LinesOf(nullptr, now);
  EXPECT_FALSE(Line(lines, "delete"));
  EXPECT_FALSE(Line(lines, "persist"));
  now.activity.persist.counts[1] = 1;
  EXPECT_EQ(Line(LinesOf(nullptr, now), "persist"), (Words{"persist", "0.4", "us", "0.5", "us", "0.5", "us"}));
}

TEST_F(TopTest, RestartedServerBeginsAtZero) {
  Reading before = At(100, "7");
  Count(before, Code::kOk, 1000, 3);
  before.info["sleeps"] = "900";
  before.activity.fabrics[0].requests = 1000;
  Reading now = At(101, "8");
  Count(now, Code::kOk, 3, 0);
  now.info["sleeps"] = "4";
  now.activity.fabrics[0].requests = 3;
  const auto lines = LinesOf(&before, now);
  EXPECT_EQ(lines.front(), "Since the server's start");
  EXPECT_EQ(lines, LinesOf(nullptr, now));
  EXPECT_TRUE(Has(lines, " 4 sleeps"));
}

TEST_F(TopTest, CountThatFallsIsNotNegative) {
  Reading before = At(100);
  Count(before, Code::kOk, 1000, 3);
  before.info["sleeps"] = "900";
  Reading now = before;
  now.at += std::chrono::seconds(1);
  now.info["sleeps"] = "899";
  now.activity.operations[0].outcomes[0] = 999;
  now.activity.operations[0].time.counts[3] = 998;
  const auto lines = LinesOf(&before, now);
  EXPECT_EQ(Line(lines, "put_inline"), (Words{"put_inline", "0", "0", "-", "-", "-"}));
  EXPECT_TRUE(Has(lines, " 0/s sleeps"));
}

TEST_F(TopTest, FabricsAreFoundByTheirNames) {
  Reading before = At(100);
  before.activity.fabrics = {ByFabric("shm", 5, 10)};
  Reading now = At(101);
  now.activity.fabrics = {ByFabric("verbs", 2, 50, 1, 0), ByFabric("shm", 1, 30, 0, 4)};
  now.activity.fabrics[0].device = "rxe0";
  const auto lines = LinesOf(&before, now);
  EXPECT_EQ(Line(lines, "verbs"), (Words{"verbs", "rxe0", "50", "2", "1", "0"}));
  EXPECT_EQ(Line(lines, "shm"), (Words{"shm", "20", "1", "0", "4"}));
}

TEST_F(TopTest, LogIsDrawnAsABar) {
  Reading now = At(100);
  now.info["log_bytes_total"] = "1048576";
  now.info["log_bytes_used"] = "524288";
  now.info["log_bytes_live"] = "262144";
  now.info["free_regions"] = "9";
  EXPECT_TRUE(
      Has(LinesOf(nullptr, now), "log       [#####:::::..........] 1.0 MiB, 50.0 % used, 25.0 % live, 9 regions free"));
  // More than possible, as from a server that lies.
  now.info["log_bytes_used"] = "9999999999";
  now.info["log_bytes_live"] = "99999999999";
  EXPECT_TRUE(Has(LinesOf(nullptr, now), "[####################]"));
  now.info["log_bytes_total"] = "0";
  EXPECT_TRUE(Has(LinesOf(nullptr, now), "[....................] 0 B, 0.0 % used"));
}

TEST_F(TopTest, AmountsHaveUnits) {
  Reading before = At(100);
  Reading now = At(102);
  now.info["nvm_bytes_written"] = "3145728";
  now.info["scrub_bytes"] = "200";
  const auto lines = LinesOf(&before, now);
  EXPECT_TRUE(Has(lines, "shards    1.5 MiB/s written to NVM, 0/s sleeps, 100 B/s verified"));
}

}  // namespace
}  // namespace erda::cli

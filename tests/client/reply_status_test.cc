#include "client/reply_status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "client/hand_fabric.h"

namespace erda::client {
namespace {

// Returns the client's status for a reply that says kUnavailable for this reason.
Status OfReply(format::Reason reason, uint64_t number = 0) {
  HandFabric fabric;
  const auto queue = fabric.CreateQueue();
  EXPECT_TRUE(queue.ok());
  const Link link(fabric, **queue, "hand:server", 3, 1);
  format::Reply reply{};
  reply.code = static_cast<uint8_t>(Code::kUnavailable);
  reply.reason = static_cast<uint8_t>(reason);
  reply.number = number;
  return StatusOf(link, reply);
}

Status OfFailedJournal(uint64_t number) { return OfReply(format::Reason::kJournal, number); }

TEST(ReplyStatusTest, FailureOfTheJournalNamesTheErrorOfTheDisk) {
  const Status status = OfFailedJournal(EIO);
  EXPECT_EQ(
      status.ToString(),
      "unavailable: hand:server: shard 3 cannot write to the disk of its journal (Input/output error), and changes "
      "nothing; its server needs a restart");
  EXPECT_EQ(status.error_number(), EIO);
  EXPECT_NE(OfFailedJournal(ENOSPC).message().find("(No space left on device)"), std::string_view::npos);
}

TEST(ReplyStatusTest, AShardWithoutItsMirrorSaysSo) {
  EXPECT_EQ(OfReply(format::Reason::kNoMirror).ToString(),
            "unavailable: hand:server: shard 3 has no mirror in sync, and takes no changes before it has one. A change "
            "that waited for the mirror may still take effect");
}

TEST(ReplyStatusTest, FailureWithoutANumberNamesNoError) {
  const std::string plain =
      "unavailable: hand:server: shard 3 cannot write to the disk of its journal, and changes nothing; its server "
      "needs "
      "a restart";
  EXPECT_EQ(OfFailedJournal(0).ToString(), plain) << "a server of an earlier version";
  EXPECT_EQ(OfFailedJournal(0).error_number(), 0);
  for (const uint64_t number : {uint64_t{INT32_MAX} + 1, uint64_t{1} << 32, UINT64_MAX}) {
    EXPECT_EQ(OfFailedJournal(number).ToString(), plain) << "no error has the number " << number;
    EXPECT_EQ(OfFailedJournal(number).error_number(), 0);
  }
}

TEST(ReplyStatusTest, UnknownErrorIsANumber) {
  const Status status = OfFailedJournal(4242);
  EXPECT_NE(status.message().find("(Unknown error 4242)"), std::string_view::npos) << status.ToString();
  EXPECT_EQ(status.error_number(), 4242);
}

}  // namespace
}  // namespace erda::client

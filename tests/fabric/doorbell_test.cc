// The doorbell of an shm channel: rings, and the end of the socket.
#include "fabric/shm/doorbell.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <optional>

#include "fabric/failing_send.h"

namespace erda::fabric {
namespace {

using shm::Doorbell;

class DoorbellTest : public testing::Test {
 protected:
  DoorbellTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    here_.emplace(UniqueFd(ends[0]));
    there_.emplace(UniqueFd(ends[1]));
  }
  std::optional<Doorbell> here_;
  std::optional<Doorbell> there_;
};

TEST_F(DoorbellTest, HearCountsTheRings) {
  here_->Hear();
  EXPECT_EQ(here_->heard(), 0U);
  EXPECT_TRUE(there_->Ring());
  EXPECT_TRUE(there_->Ring());
  here_->Hear();
  EXPECT_EQ(here_->heard(), 2U);
  EXPECT_TRUE(there_->Ring());
  here_->Hear();
  EXPECT_EQ(here_->heard(), 3U);
  EXPECT_FALSE(here_->peer_is_gone());
  EXPECT_EQ(there_->heard(), 0U);
}

TEST_F(DoorbellTest, PeerThatHungUpIsGoneAfterItsLastRing) {
  EXPECT_TRUE(there_->Ring());
  there_->HangUp();
  here_->Hear();
  EXPECT_EQ(here_->heard(), 1U);
  EXPECT_TRUE(here_->peer_is_gone());
}

TEST_F(DoorbellTest, EndThatHungUpStillHearsItsPeer) {
  here_->HangUp();
  EXPECT_TRUE(there_->Ring());
  here_->Hear();
  EXPECT_EQ(here_->heard(), 1U);
  EXPECT_FALSE(here_->peer_is_gone());
  there_.reset();
  here_->Hear();
  EXPECT_TRUE(here_->peer_is_gone());
}

TEST_F(DoorbellTest, PeerThatIsGoneNeedsNoRing) {
  there_.reset();
  EXPECT_TRUE(here_->Ring());
}

// (With a sanitizer no doorbell fails: see failing_send.cc.)
TEST_F(DoorbellTest, RingThatTheKernelRefusedFailsNoSanitizer) {
  doorbells_to_fail = 1;
  EXPECT_FALSE(there_->Ring());
  here_->Hear();
  EXPECT_EQ(here_->heard(), 0U);
  EXPECT_TRUE(there_->Ring());
  here_->Hear();
  EXPECT_EQ(here_->heard(), 1U);
}

}  // namespace
}  // namespace erda::fabric

// The shm fabric's listener drops a peer that connects and sends nothing. The test sets the clock by hand.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/hand_clock.h"
#include "base/temporary_folder.h"
#include "fabric/shm/listener.h"
#include "fabric/shm/socket.h"

namespace erda::fabric {
namespace {

class SilentTest : public testing::Test {
 protected:
  SilentTest() { listener_ = *shm::ShmListener::Create("shm:" + path(), &maps_, clock_); }
  [[nodiscard]] std::string path() const { return (folder_ / "socket").string(); }
  [[nodiscard]] UniqueFd Call() const { return *shm::ConnectTo(path()); }
  // Returns true if the listener has hung up.
  static bool IsDropped(const UniqueFd& socket) {
    pollfd watched{socket.get(), POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1 && (watched.revents & POLLHUP) != 0;
  }
  // Sends a client's first message at once.
  static void Ask(const UniqueFd& socket) {
    shm::Greeting ask;
    ask.kind = shm::Greeting::kAsk;
    ask.message_depth = 8;
    EXPECT_TRUE(shm::SendGreeting(socket.get(), ask, {}).ok());
  }

  const TemporaryFolder folder_;
  HandClock clock_;
  shm::MemoryMaps maps_;
  std::unique_ptr<Listener> listener_;
};

constexpr Nanoseconds kMost = shm::ShmListener::kSilentMost;

TEST_F(SilentTest, SilentPeerIsDroppedAfterItsTime) {
  const UniqueFd first = Call();
  EXPECT_EQ(listener_->Poll(), nullptr);
  clock_.now += kMost / 2;
  const UniqueFd second = Call();
  EXPECT_EQ(listener_->Poll(), nullptr);
  clock_.now += kMost / 2 - Nanoseconds(1);
  EXPECT_EQ(listener_->Poll(), nullptr);
  EXPECT_FALSE(IsDropped(first)) << "its time is not over";
  clock_.now += Nanoseconds(1);
  EXPECT_EQ(listener_->Poll(), nullptr);
  EXPECT_TRUE(IsDropped(first));
  EXPECT_FALSE(IsDropped(second));
  clock_.now += kMost;
  EXPECT_EQ(listener_->Poll(), nullptr);
  EXPECT_TRUE(IsDropped(second));
}

TEST_F(SilentTest, PeerThatAsksInTimeIsHeard) {
  const UniqueFd silent = Call();
  const UniqueFd late = Call();
  EXPECT_EQ(listener_->Poll(), nullptr);
  clock_.now += kMost - Nanoseconds(1);
  Ask(late);
  const auto incoming = listener_->Poll();
  ASSERT_NE(incoming, nullptr);
  EXPECT_EQ(incoming->peer_name(), "shm, process " + std::to_string(getpid()) + " of user " + std::to_string(getuid()));
  EXPECT_FALSE(IsDropped(silent));
}

// So it needs no other peer to drop a silent one.
TEST_F(SilentTest, ListenerWakesToDropASilentPeer) {
  const UniqueFd silent = Call();
  EXPECT_EQ(listener_->Poll(), nullptr);
  clock_.now += kMost;
  listener_->Wait(std::chrono::hours(1));  // Returns at once.
  EXPECT_EQ(listener_->Poll(), nullptr);
  EXPECT_TRUE(IsDropped(silent));
}

TEST_F(SilentTest, OldestOfTooManySilentPeersAreDropped) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(Call());
    EXPECT_EQ(listener_->Poll(), nullptr);
  }
  const auto dropped = std::ranges::count_if(silent, IsDropped);
  EXPECT_EQ(dropped, 36);
  EXPECT_TRUE(IsDropped(silent[35]));
  EXPECT_FALSE(IsDropped(silent[36]));
}

}  // namespace
}  // namespace erda::fabric

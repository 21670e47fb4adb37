// The shm fabric's queue looks only into the rings of active channels. It parks silent ones, and hears them when they
// speak again.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/relax.h"
#include "base/shared_memory.h"
#include "base/temporary_folder.h"
#include "fabric/failing_send.h"
#include "fabric/meeting.h"
#include "fabric/shm/queue.h"
#include "fabric/shm/shm_fabric.h"

namespace erda::fabric {
namespace {

using std::chrono::seconds;

constexpr seconds kForever(20);
constexpr seconds kNotForever(10);
// kLong is more busy Polls than any silent channel stays polled for. kShort is more than pass before a parked channel
// is heard.
constexpr uint32_t kLong = 1000;
constexpr uint32_t kShort = 100;

class ParkTest : public testing::Test {
 protected:
  static constexpr size_t kMany = 60;

  struct Client {
    std::unique_ptr<CompletionQueue> queue;
    std::unique_ptr<Channel> channel;  // Destroyed before its queue.
  };

  ParkTest() : listener_(*fabric_.Listen("shm:" + (folder_ / "socket").string())) {}

  void Connect(size_t clients) {
    for (size_t i = 0; i < clients; ++i) {
      Client& client = *clients_.emplace_back(std::make_unique<Client>());
      client.queue = *fabric_.CreateQueue();
      ChannelOptions options;
      options.queue = client.queue.get();
      client.channel = *fabric_.Connect(listener_->address(), options);
      options.queue = queue_.get();
      const auto incoming = listener_->Poll();
      ASSERT_NE(incoming, nullptr);
      auto accepted = incoming->Accept(options);
      ASSERT_TRUE(accepted.ok()) << accepted.status().ToString();
      channels_.push_back(*std::move(accepted));
      channels_.back()->user = &client;
      std::array<Completion, 4> polled;
      while (!client.channel->connected()) client.queue->Poll(polled);
    }
    Poll();
    closed_.clear();
  }
  void Say(size_t client, uint32_t imm = 0) { ASSERT_TRUE(SayTo(*clients_[client]->channel, imm).ok()); }
  static Status SayTo(Channel& channel, uint32_t imm) {
    WorkRequest message;
    message.kind = OpKind::kWriteImm;
    message.signaled = false;
    message.imm = imm;
    return channel.Post({&message, 1});
  }
  // Polls the server once, and collects the events.
  void Poll() {
    std::array<Completion, 64> polled;
    const size_t n = queue_->Poll(polled);
    for (const Completion& completion : std::span(polled).first(n)) {
      const auto* client = static_cast<const Client*>(completion.channel->user);
      if (completion.kind == OpKind::kReceiveImm) heard_.insert(client);
      if (completion.kind == OpKind::kClosed) closed_.push_back({client, heard_.contains(client)});
    }
  }
  // The first client alone talks, in this number of Polls.
  void Talk(uint32_t polls) {
    for (uint32_t i = 0; i < polls; ++i) {
      Say(0);
      Poll();
    }
  }
  [[nodiscard]] bool Heard(size_t client) const { return heard_.contains(clients_[client].get()); }
  [[nodiscard]] size_t polled() const { return static_cast<const shm::ShmQueue&>(*queue_).polled(); }
  static Nanoseconds Now() { return SteadyClock::Instance().Now(); }

  const TemporaryFolder folder_;
  shm::ShmFabric fabric_;
  const std::unique_ptr<CompletionQueue> queue_ = *fabric_.CreateQueue();
  const std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::set<const void*> heard_;
  struct Closed {
    const void* client;
    bool was_heard;
  };
  std::vector<Closed> closed_;
};

TEST_F(ParkTest, APollLooksAtActiveChannelsAlone) {
  Connect(kMany);
  EXPECT_EQ(polled(), kMany);
  Talk(kLong);
  EXPECT_EQ(polled(), 1U);
  for (size_t i = 20; i < 25; ++i) Say(i);
  Talk(kShort);
  EXPECT_EQ(polled(), 6U);
}

TEST_F(ParkTest, FewSilentChannelsStayPolled) {
  Connect(16);
  Talk(kLong);
  EXPECT_EQ(polled(), 16U);
}

TEST_F(ParkTest, ChannelsStayPolledWhileAllAreSilent) {
  Connect(kMany);
  for (uint32_t i = 0; i < 10 * kLong; ++i) Poll();
  EXPECT_EQ(polled(), kMany);
}

TEST_F(ParkTest, ParkedChannelIsHeardWhileAnotherTalks) {
  Connect(kMany);
  Talk(kLong);
  for (size_t i = 1; i < kMany; ++i) {
    Say(i);
    Talk(kShort);
    EXPECT_TRUE(Heard(i)) << i;
  }
}

TEST_F(ParkTest, ParkedChannelsThatSpeakAtOnceAreAllHeard) {
  Connect(kMany);
  Talk(kLong);
  heard_.clear();
  for (size_t i = 1; i < kMany; ++i) Say(i);
  Talk(3 * kShort);
  EXPECT_EQ(heard_.size(), kMany);
}

// The message is in the ring, and its reader sleeps: only the doorbell can wake it. (With a sanitizer no doorbell
// fails: see failing_send.cc.)
TEST_F(ParkTest, DoorbellThatTheKernelRefusedRingsAgainNoSanitizer) {
  for (const bool by_poll : {true, false}) {
    if (by_poll) Connect(1);
    std::chrono::nanoseconds at_most = std::chrono::hours(1);
    ASSERT_TRUE(queue_->Arm(&at_most));
    const auto is_awake = [&] {
      pollfd look{queue_->descriptor(), POLLIN, 0};
      return ::poll(&look, 1, 0) == 1;
    };
    ASSERT_FALSE(is_awake());
    doorbells_to_fail = 3;
    Say(0);
    EXPECT_FALSE(is_awake());
    CompletionQueue& sender = *clients_[0]->queue;
    std::array<Completion, 4> polled;
    if (by_poll) {
      for (int i = 0; i < 3; ++i) sender.Poll(polled);
    } else {
      std::chrono::nanoseconds left = std::chrono::hours(1);
      EXPECT_TRUE(sender.Arm(&left));
      EXPECT_LE(left, std::chrono::milliseconds(1)) << "it sleeps only until it tries again";
      sender.Disarm();
      sender.Wait(std::chrono::hours(1));
      EXPECT_TRUE(sender.Arm(&left));
      sender.Disarm();
    }
    EXPECT_EQ(doorbells_to_fail, 0);
    EXPECT_TRUE(is_awake());
    queue_->Disarm();
    heard_.clear();
    Poll();
    EXPECT_TRUE(Heard(0));
  }
}

TEST_F(ParkTest, AChannelThatOwesARingMayGo) {
  Connect(2);
  std::chrono::nanoseconds at_most = std::chrono::hours(1);
  ASSERT_TRUE(queue_->Arm(&at_most));
  doorbells_to_fail = 1;
  Say(0);
  clients_[0]->channel.reset();
  std::array<Completion, 4> polled;
  clients_[0]->queue->Poll(polled);
  doorbells_to_fail = 0;
  queue_->Disarm();
}

TEST_F(ParkTest, ParkedChannelEndsAWait) {
  Connect(kMany);
  Talk(kLong);
  const Nanoseconds begin = Now();
  for (size_t i = 1; i < kMany; ++i) {
    Say(i);
    queue_->Wait(kForever);
    Poll();
    ASSERT_TRUE(Heard(i)) << i;
  }
  EXPECT_LT(Now() - begin, kNotForever);
}

TEST_F(ParkTest, ParkedChannelMakesAnArmedQueueReadable) {
  Connect(kMany);
  Talk(kLong);
  const auto other = *fabric_.CreateQueue();
  CompletionQueue* const queues[] = {other.get(), queue_.get()};
  const Nanoseconds begin = Now();
  Say(7);
  WaitAny(queues, kForever);
  Poll();
  EXPECT_TRUE(Heard(7));
  EXPECT_LT(Now() - begin, kNotForever);
}

TEST_F(ParkTest, ParkedChannelThatHangsUpClosesAfterItsLastMessage) {
  Connect(kMany);
  Talk(kLong);
  Say(7);
  clients_[7]->channel.reset();
  clients_[8]->channel.reset();
  Talk(kShort);
  ASSERT_EQ(closed_.size(), 2U);
  for (const Closed& closed : closed_) EXPECT_EQ(closed.was_heard, closed.client == clients_[7].get());
}

TEST_F(ParkTest, DestroyedChannelIsForgottenWhetherItIsParkedOrNot) {
  Connect(kMany);
  channels_[5].reset();
  EXPECT_EQ(polled(), kMany - 1);
  Talk(kLong);
  channels_[6].reset();
  EXPECT_EQ(polled(), 1U);
  Say(7);
  Talk(kShort);
  EXPECT_TRUE(Heard(7));
  channels_[7].reset();
  EXPECT_EQ(polled(), 1U);
}

// One thread speaks on channels that the other thread is about to park. Each message must be heard soon after it was
// sent.
TEST_F(ParkTest, NoWakeUpIsLostWhileChannelsAreParked) {
  constexpr uint32_t kMessages = 10'000;
  Connect(kMany);
  std::atomic<uint32_t> sent{0};
  std::atomic<uint32_t> heard{0};
  std::atomic<bool> stop{false};
  std::thread quiet([&] {
    // Some more than stay polled, so that the next speaker may be about to be parked.
    constexpr size_t kSpeakers = 24;
    Random random(1);
    for (uint32_t i = 1; i <= kMessages; ++i) {
      if (!SayTo(*clients_[1 + random.Uniform(kSpeakers)]->channel, i).ok()) break;
      sent.store(i, std::memory_order_release);
      for (Relax relax; heard.load(std::memory_order_acquire) != i; relax.Step()) {
        if (stop.load(std::memory_order_relaxed)) return;
      }
    }
    stop.store(true, std::memory_order_relaxed);
  });
  uint32_t waited = 0;
  size_t parked_most = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    if (heard.load(std::memory_order_relaxed) >= sent.load(std::memory_order_acquire)) waited = 0;
    if (++waited > kLong) break;
    Say(0);
    std::array<Completion, 8> polled_now;
    const size_t n = queue_->Poll(polled_now);
    for (const Completion& completion : std::span(polled_now).first(n)) {
      if (completion.imm != 0) heard.store(completion.imm, std::memory_order_release);
    }
    parked_most = std::max(parked_most, kMany - polled());
  }
  EXPECT_LE(waited, kLong) << "message " << sent.load() << " was not heard in " << kLong << " Polls";
  EXPECT_GT(parked_most, kMany / 2);
  stop.store(true, std::memory_order_relaxed);
  quiet.join();
}

// A channel speaks at the instant in which the other thread parks it.
TEST_F(ParkTest, ChannelThatSpeaksWhileItIsParkedIsHeard) {
  constexpr size_t kClients = 18;  // Enough channels that looks are counted also while one is parked.
  constexpr uint32_t kPeriod = shm::ShmQueue::kBusyLooksPerPark;
  Connect(kClients);
  while (polled() == kClients) {
    for (size_t i = 2; i < kClients; ++i) Say(i);
    Talk(1);
  }
  // All channels speak in one period, and all but the second client in the next. Then the next Poll parks that one.
  const auto until_it_is_parked = [&](uint32_t polls) {
    for (size_t i = 1; i < kClients; ++i) Say(i);
    Talk(polls - kPeriod);
    for (size_t i = 2; i < kClients; ++i) Say(i);
    Talk(kPeriod - 1);
    heard_.clear();
    Say(0);
  };
  until_it_is_parked(2 * kPeriod);
  Meeting(3'000, 60).Run([&] { EXPECT_TRUE(SayTo(*clients_[1]->channel, 1).ok()); }, [&] { Poll(); },
                         [&](uint32_t round) {
                           Talk(kShort);
                           EXPECT_TRUE(Heard(1)) << "round " << round;
                           EXPECT_EQ(polled(), kClients);
                           until_it_is_parked(2 * kPeriod - kShort);
                           return !HasFailure();
                         });
}

}  // namespace
}  // namespace erda::fabric

// Conformance: waiting and waking, for fabrics whose ends can be in different threads.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "fabric/fixture.h"

namespace erda::fabric {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Longer than anything here may take. A thread that waits that long was not woken.
constexpr seconds kForever(20);
constexpr seconds kNotForever(10);

class WaitTest : public FabricTest {
 protected:
  static Nanoseconds Now() { return SteadyClock::Instance().Now(); }
};

INSTANTIATE_TEST_SUITE_P(Fabrics, WaitTest, testing::ValuesIn(RealWorlds()), KindName);

TEST_P(WaitTest, WaitEndsWithItsTimeout) {
  for (const Nanoseconds timeout : {Nanoseconds(0), Nanoseconds(1), Nanoseconds(milliseconds(30))}) {
    const Nanoseconds begin = Now();
    client_.queue->Wait(timeout);
    listener_->Wait(timeout);
    EXPECT_LT(Now() - begin, kNotForever);
  }
}

TEST_P(WaitTest, WaitSleepsAboutAsLongAsNothingHappens) {
  const Nanoseconds begin = Now();
  client_.queue->Wait(milliseconds(50));
  EXPECT_GE(Now() - begin, milliseconds(25)) << "it must not spin";
}

TEST_P(WaitTest, AWakeBeforeTheWaitIsNotLost) {
  const Nanoseconds begin = Now();
  client_.queue->Wake();
  client_.queue->Wait(kForever);
  listener_->Wake();
  listener_->Wait(kForever);
  EXPECT_LT(Now() - begin, kNotForever);
}

TEST_P(WaitTest, AWakeFromAnotherThreadEndsTheWait) {
  const Nanoseconds begin = Now();
  for (int round = 0; round < 20; ++round) {
    std::thread waker([&] {
      std::this_thread::sleep_for(milliseconds(round % 4));
      client_.queue->Wake();
      listener_->Wake();
    });
    client_.queue->Wait(kForever);
    listener_->Wait(kForever);
    waker.join();
  }
  EXPECT_LT(Now() - begin, kNotForever);
}

TEST_P(WaitTest, AskingPeerEndsTheListenersWait) {
  const Nanoseconds begin = Now();
  std::thread asking([&] {
    std::this_thread::sleep_for(milliseconds(20));
    ChannelOptions options;
    options.queue = client_.queue.get();
    const auto channel = client_.fabric->Connect(listener_->address(), options);
    EXPECT_TRUE(channel.ok());
    while (client_.events.empty() && Now() - begin < kNotForever) {
      client_.queue->Wait(kForever);
      client_.Poll();
    }
    EXPECT_EQ(client_.Count(OpKind::kClosed), 1U) << "the refusal wakes the one who asked";
  });
  std::unique_ptr<Incoming> incoming;
  while (incoming == nullptr && Now() - begin < kNotForever) {
    listener_->Wait(kForever);
    incoming = listener_->Poll();
  }
  EXPECT_NE(incoming, nullptr);
  incoming.reset();
  asking.join();
  EXPECT_LT(Now() - begin, kNotForever);
}

// Another queue of the client's fabric, and one of the server's, like those of a thread that serves several fabrics.
TEST_P(WaitTest, AWakeOfAnyEndsTheWaitForAll) {
  auto other = client_.fabric->CreateQueue();
  ASSERT_TRUE(other.ok());
  CompletionQueue* const queues[] = {client_.queue.get(), other->get(), server_.queue.get()};
  const Nanoseconds begin = Now();
  for (CompletionQueue* queue : queues) {
    queue->Wake();
    WaitAny(queues, kForever);
    std::thread waker([&] {
      std::this_thread::sleep_for(milliseconds(5));
      queue->Wake();
    });
    WaitAny(queues, kForever);
    waker.join();
  }
  EXPECT_LT(Now() - begin, kNotForever);
}

TEST_P(WaitTest, WaitAnySleepsAboutAsLongAsNothingHappens) {
  CompletionQueue* const queues[] = {client_.queue.get(), server_.queue.get()};
  for (CompletionQueue* queue : queues) queue->Wake();
  WaitAny(queues, kForever);
  const Nanoseconds begin = Now();
  WaitAny(queues, milliseconds(50));
  EXPECT_GE(Now() - begin, milliseconds(25)) << "it must not spin, and no Wake is heard twice";
  WaitAny(queues, Nanoseconds(0));
  EXPECT_LT(Now() - begin, kNotForever);
}

TEST_P(WaitTest, WaitAnyReturnsAtOnceIfSomethingIsThere) {
  Connect();
  CompletionQueue* const queues[] = {client_.queue.get(), server_.queue.get()};
  const Nanoseconds begin = Now();
  for (int round = 0; round < 100; ++round) {
    End& from = round % 2 == 0 ? client_ : server_;
    End& to = round % 2 == 0 ? server_ : client_;
    ASSERT_TRUE(Post(*from.channel, Unsignaled(Send(from, 0, 8))).ok());
    while (to.events.empty() && Now() - begin < kNotForever) {
      WaitAny(queues, kForever);
      client_.Poll();
      server_.Poll();
    }
    to.events.clear();
  }
  EXPECT_LT(Now() - begin, kNotForever);
}

// Each end sleeps until the other has sent. A lost wake-up makes a round take kForever. From time to time the other end
// lets it sleep deeply.
class LostWakeUpTest : public WaitTest {
 protected:
  void Talk(uint32_t rounds, const std::function<void(End&)>& wait);
};

INSTANTIATE_TEST_SUITE_P(Fabrics, LostWakeUpTest, testing::ValuesIn(RealWorlds()), KindName);

void LostWakeUpTest::Talk(uint32_t rounds, const std::function<void(End&)>& wait) {
  Connect(4);
  rounds = Rounds(rounds);
  std::atomic<bool> failed = false;
  const auto talk = [&](End& end, bool begins) {
    std::array<Completion, 8> polled;
    uint32_t sent = 0;
    uint32_t received = 0;
    const auto send = [&] {
      if (sent % 128 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (!Post(*end.channel, Unsignaled(WriteImm(end, 0, 8, 0, ++sent))).ok()) failed = true;
    };
    if (begins) send();
    while (received < rounds && !failed) {
      const size_t count = end.queue->Poll(polled);
      if (count == 0) {
        const Nanoseconds begin = Now();
        wait(end);
        if (Now() - begin > kNotForever) failed = true;
      }
      for (const Completion& c : std::span(polled).first(count)) {
        if (c.kind != OpKind::kReceiveImm || c.imm != ++received) failed = true;
        if (!begins || received < rounds) send();
      }
    }
  };
  std::thread server([&] { talk(server_, false); });
  talk(client_, true);
  server.join();
  EXPECT_FALSE(failed);
}

TEST_P(LostWakeUpTest, NoWakeUpIsLostWithOneQueue) {
  Talk(20'000, [](End& end) { end.queue->Wait(kForever); });
}

// Beside each end's queue there is another one, without any events.
TEST_P(LostWakeUpTest, NoWakeUpIsLostWithSeveralQueues) {
  auto of_client = client_.fabric->CreateQueue();
  auto of_server = server_.fabric->CreateQueue();
  ASSERT_TRUE(of_client.ok() && of_server.ok());
  Talk(10'000, [&](End& end) {
    CompletionQueue* const queues[] = {end.queue.get(), &end == &client_ ? of_client->get() : of_server->get()};
    WaitAny(queues, kForever);
  });
}

// The owner of the memory stores whole words while a peer in another thread reads them.
TEST_P(WaitTest, AWordThatTheOwnerStoresIsReadWhole) {
  Connect();
  constexpr size_t kWords = 64;
  auto* words = reinterpret_cast<uint64_t*>(server_.bytes(0, kWords * 8).data());
  std::atomic<bool> stop = false;
  std::thread owner([&] {
    for (uint64_t round = 0; !stop; ++round) {
      for (size_t i = 0; i < kWords; ++i)
        std::atomic_ref(words[i]).store((round & 0xff) * 0x0101010101010101, std::memory_order_relaxed);
    }
  });
  for (size_t round = 0; round < 3000 && !HasFailure(); ++round) {
    const size_t skip = world_->whole_in_any_transfer() ? round % 8 : 0;  // Begins in the middle of a word.
    ASSERT_TRUE(Post(*client_.channel, Read(client_, round % 7, kWords * 8 - skip, skip)).ok());
    EXPECT_TRUE(PumpUntil(client_, OpKind::kRead));
    client_.events.clear();
    const std::string seen = client_.text(round % 7, kWords * 8 - skip);
    for (size_t at = (8 - skip) % 8; at < seen.size(); at += 8) EXPECT_EQ(seen.substr(at, 8), std::string(8, seen[at]));
  }
  stop = true;
  owner.join();
}

}  // namespace
}  // namespace erda::fabric

// A queue of the shm fabric without memory hears all of its channels, also those that it has parked.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "fabric/shm/queue.h"
#include "fabric/shm/shm_fabric.h"
#include "misuse/failing_new.h"

namespace erda {
namespace {

class QueueMemory : public testing::Test {
 protected:
  static constexpr size_t kMany = 60;

  struct Client {
    std::unique_ptr<fabric::CompletionQueue> queue;
    std::unique_ptr<fabric::Channel> channel;   // Goes before its queue.
    std::unique_ptr<fabric::Channel> accepted;  // The server's end.
    bool heard = false;
  };

  QueueMemory() : listener_(*fabric_.Listen("shm:" + (folder_ / "socket").string())) {}

  void Connect(size_t clients) {
    for (size_t i = 0; i < clients; ++i) {
      Client& client = *clients_.emplace_back(std::make_unique<Client>());
      client.queue = *fabric_.CreateQueue();
      fabric::ChannelOptions options;
      options.queue = client.queue.get();
      client.channel = *fabric_.Connect(listener_->address(), options);
      options.queue = queue_.get();
      const auto incoming = listener_->Poll();
      ASSERT_NE(incoming, nullptr);
      client.accepted = *incoming->Accept(options);
      client.accepted->user = &client;
      std::array<fabric::Completion, 4> polled;
      while (!client.channel->connected()) client.queue->Poll(polled);
    }
  }
  void Say(size_t client) {
    fabric::WorkRequest message;
    message.kind = fabric::OpKind::kWriteImm;
    message.signaled = false;
    ASSERT_TRUE(clients_[client]->channel->Post({&message, 1}).ok());
  }
  void Poll() {
    std::array<fabric::Completion, 64> polled;
    const size_t n = queue_->Poll(polled);
    for (const fabric::Completion& completion : std::span(polled).first(n)) {
      if (completion.kind != fabric::OpKind::kReceiveImm) continue;
      static_cast<Client*>(completion.channel->user)->heard = true;
    }
  }

  const TemporaryFolder folder_;
  fabric::shm::ShmFabric fabric_;
  const std::unique_ptr<fabric::CompletionQueue> queue_ = *fabric_.CreateQueue();
  const std::unique_ptr<fabric::Listener> listener_;
  std::vector<std::unique_ptr<Client>> clients_;
};

// Silent channels are parked, and others take their places among the polled ones.
TEST_F(QueueMemory, ParkedChannelIsHeardWithoutMemory) {
  Connect(kMany);
  for (int i = 0; i < 1000; ++i) {
    Say(0);
    Poll();
  }
  ASSERT_EQ(static_cast<const fabric::shm::ShmQueue&>(*queue_).polled(), 1U);
  Connect(kMany);
  for (size_t i = 1; i < kMany; ++i) {
    clients_[i]->heard = false;
    Say(i);
  }
  fails_once = false;
  left = 0;
  bool thrown = false;
  try {
    for (int i = 0; i < 2000; ++i) Poll();
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  left = -1;
  EXPECT_FALSE(thrown);
  for (size_t i = 1; i < kMany; ++i) EXPECT_TRUE(clients_[i]->heard) << i;
}

// Each allocation of the call fails in turn. The failed Read must not be followed by another operation.
TEST_F(QueueMemory, FailedOperationFailsTheChannelWithoutMemory) {
  std::array<std::byte, 8> bytes{};
  fabric::WorkRequest read;
  read.kind = fabric::OpKind::kRead;
  read.local = bytes;
  read.remote = {.region = 3};  // The peer offers none.
  fails_once = false;
  int64_t successes = 0;
  for (bool thrown = true; thrown; ++successes) {
    SCOPED_TRACE(successes);
    Connect(1);
    fabric::Channel& channel = *clients_.back()->channel;
    thrown = false;
    left = successes;
    try {
      (void)channel.Post({&read, 1});
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
    left = -1;
    EXPECT_FALSE(channel.connected());
    EXPECT_TRUE(channel.lost());
    EXPECT_EQ(channel.Post({&read, 1}).code(), Code::kUnavailable);
  }
  EXPECT_GT(successes, 1) << "at least one allocation has failed";
}

}  // namespace
}  // namespace erda

// A queue and channels over a device that the test plays.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/channel.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/queue.h"
#include "fabric/verbs/region.h"
#include "verbs/fake_rdma.h"

namespace erda::fabric::verbs {

// A device that is open, without a queue.
class DeviceTest : public testing::Test {
 protected:
  // Opens the device with its present abilities.
  void Open();
  // Registers memory of the test, at the address of the test's choice in it.
  std::unique_ptr<VerbsRegion> Register(size_t at, size_t bytes, Access access);

  FakeRdma rdma_;
  std::shared_ptr<Device> device_;
  std::array<std::byte, 4096> memory_{};
};

// A queue, and its side of the connections of which the test plays the peer.
class QueueTest : public DeviceTest {
 protected:
  static constexpr uint32_t kDepth = 4;
  static constexpr uint32_t kPeersCreditKey = 5000;
  static constexpr uint64_t kPeersCreditPage = 0x70000;
  static constexpr uint64_t kPeersRegion = 0x90000;
  static constexpr uint32_t kPeersRegionKey = 9000;

  void SetUp() override;
  void TearDown() override;

  // Makes an asking channel. rdma_.last_id is its identity.
  std::unique_ptr<Channel> Ask(const ChannelOptions& options);
  std::unique_ptr<Channel> Ask(uint32_t depth = kDepth);
  // Makes an accepted channel. rdma_.last_id is its identity.
  Result<std::unique_ptr<Channel>> Accept(uint32_t depth = kDepth);
  // Makes a channel that is connected, to a peer that offers one region. Forgets what the device was asked for until
  // then.
  std::unique_ptr<Channel> Connect(bool asking = true, uint32_t depth = kDepth);

  // Lets rdma_cm report this of the identity that was made last, and polls the queue.
  void Happen(rdma_cm_event_type event);
  // The peer's message arrives at the oldest receive of the identity's queue pair, and the queue is polled.
  void Arrive(rdma_cm_id* id, std::span<const std::byte> message);
  void ArriveImm(rdma_cm_id* id, uint32_t imm);
  [[nodiscard]] Greeting PeersGreeting() const;

  // Polls until nothing comes. The completions are added to `polled_`.
  void Poll();
  // Returns the completions since the last call.
  std::vector<Completion> TakePolled();
  // Lets the device complete everything that it was asked for, and polls.
  void CompleteSent(ibv_wc_status status = IBV_WC_SUCCESS);

  WorkRequest Work(OpKind kind, size_t bytes = 8);
  static Status Post(Channel& channel, const WorkRequest& work) { return channel.Post({&work, 1}); }

  std::unique_ptr<VerbsQueue> queue_;
  std::unique_ptr<VerbsRegion> region_;  // All of the memory, for windows and as local bytes.
  std::vector<Completion> polled_;

 private:
  void Receive(rdma_cm_id* id, ibv_wc wc, std::span<const std::byte> message);
};

}  // namespace erda::fabric::verbs

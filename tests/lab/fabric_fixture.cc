#include "lab/fabric_fixture.h"

#include <algorithm>
#include <utility>

namespace erda {

using fabric::Channel;
using fabric::End;
using fabric::OpKind;

size_t CountOf(const End& end, const Channel* channel, OpKind kind) {
  return static_cast<size_t>(std::count_if(end.events.begin(), end.events.end(), [&](const fabric::Event& event) {
    return event.channel == channel && event.kind == kind;
  }));
}

void FabricLab::SetUp() {
  LabTest::SetUp();
  if (HasFatalFailure()) return;
  constexpr size_t kBytes = size_t{1} << 20;
  for (const auto& [end, role] : {std::pair(&server_, fabric::Role::kListen), {&client_, fabric::Role::kConnect}}) {
    auto fabric = fabric::OpenFabric(Address(), role);
    ASSERT_TRUE(fabric.ok()) << fabric.status().ToString();
    end->fabric = fabric->get();
    fabrics_.push_back(*std::move(fabric));
    auto memory = SharedMemory::Create("erda-lab", kBytes);
    ASSERT_TRUE(memory.ok()) << memory.status().ToString();
    end->memory = *std::move(memory);
    auto region = end->fabric->Register(end->memory.view(), fabric::Access::kRemoteReadWrite);
    ASSERT_TRUE(region.ok()) << region.status().ToString();
    end->region = *std::move(region);
    auto queue = end->fabric->CreateQueue();
    ASSERT_TRUE(queue.ok()) << queue.status().ToString();
    end->queue = *std::move(queue);
  }
  auto listener = server_.fabric->Listen(Address());
  ASSERT_TRUE(listener.ok()) << listener.status().ToString();
  listener_ = *std::move(listener);
}

std::unique_ptr<Channel> FabricLab::Ask(uint32_t message_depth) {
  fabric::Region* const offer[] = {client_.region.get()};
  auto channel = client_.fabric->Connect(Address(), {client_.queue.get(), offer, {}, message_depth});
  EXPECT_TRUE(channel.ok()) << channel.status().ToString();
  return channel.ok() ? *std::move(channel) : nullptr;
}

std::unique_ptr<Channel> FabricLab::Connect() {
  auto channel = Ask();
  if (channel == nullptr) return nullptr;
  EXPECT_TRUE(PumpUntil([&] { return channel->connected() || !channel->error().ok(); }));
  EXPECT_TRUE(channel->connected()) << channel->error().ToString();
  return channel->connected() ? std::move(channel) : nullptr;
}

testing::AssertionResult FabricLab::Works(Channel& channel) {
  const std::string text = "message " + std::to_string(++messages_);
  fabric::Put(client_.bytes(0, text.size()), text);
  if (auto status = fabric::Post(channel, fabric::Send(client_, 0, text.size())); !status.ok()) {
    return testing::AssertionFailure() << status.ToString();
  }
  return PumpUntil([&] {
    return std::any_of(server_.events.begin(), server_.events.end(),
                       [&](const auto& event) { return event.data == text; });
  });
}

void FabricLab::Pump() {
  while (const auto incoming = listener_->Poll()) {
    fabric::Region* const offer[] = {server_.region.get()};
    auto channel = incoming->Accept({server_.queue.get(), offer, {}});
    ASSERT_TRUE(channel.ok()) << channel.status().ToString();
    accepted_.push_back(*std::move(channel));
  }
  server_.Poll();
  client_.Poll();
}

testing::AssertionResult FabricLab::PumpUntil(const std::function<bool()>& done) {
  const auto pumped = [&] {
    Pump();
    return done();
  };
  return WaitUntil(pumped) ? testing::AssertionSuccess() : testing::AssertionFailure() << "it never happened";
}

}  // namespace erda

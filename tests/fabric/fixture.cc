#include "fabric/fixture.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/random.h"

namespace erda {

void PrintTo(Code code, std::ostream* out) { *out << CodeName(code); }
void PrintTo(const Status& status, std::ostream* out) { *out << status.ToString(); }

}  // namespace erda

namespace erda::fabric {

std::string End::text(size_t offset, size_t size) const { return std::string(AsString(bytes(offset, size))); }

void End::Poll() {
  std::array<Completion, 16> polled;
  while (const size_t count = queue->Poll(polled)) {
    for (const Completion& c : std::span(polled).first(count)) {
      events.push_back({c.channel, c.kind, c.code, c.imm, c.id, c.bytes, {}});
      if (c.kind == OpKind::kReceive) events.back().data = AsString(c.data);
    }
  }
}

size_t End::Count(OpKind kind) const {
  return static_cast<size_t>(
      std::count_if(events.begin(), events.end(), [kind](const Event& event) { return event.kind == kind; }));
}

std::vector<Event> End::Of(const Channel* one) const {
  std::vector<Event> result;
  std::copy_if(events.begin(), events.end(), std::back_inserter(result),
               [one](const Event& event) { return event.channel == one; });
  return result;
}

void FabricTest::SetUp() {
  world_ = GetParam().make();
  server_.fabric = &world_->server();
  client_.fabric = &world_->client();
  for (End* end : {&server_, &client_}) {
    auto memory = SharedMemory::Create("erda-test", kMemoryBytes);
    ASSERT_TRUE(memory.ok()) << memory.status().ToString();
    end->memory = std::move(*memory);
    end->region = Register(*end, Access::kRemoteReadWrite);
    ASSERT_NE(end->region, nullptr);
    auto queue = end->fabric->CreateQueue();
    ASSERT_TRUE(queue.ok()) << queue.status().ToString();
    end->queue = std::move(*queue);
  }
  auto listener = server_.fabric->Listen(world_->NewAddress());
  ASSERT_TRUE(listener.ok()) << listener.status().ToString();
  listener_ = std::move(*listener);
}

ChannelOptions FabricTest::Offer(const End& end, std::span<Region* const> regions) const {
  ChannelOptions options;
  options.queue = end.queue.get();
  options.offer = regions;
  return options;
}

std::unique_ptr<Region> FabricTest::Register(const End& end, Access access) {
  auto region = end.fabric->Register(end.memory.view(), access);
  EXPECT_TRUE(region.ok()) << region.status().ToString();
  return region.ok() ? std::move(*region) : nullptr;
}

std::unique_ptr<Incoming> FabricTest::NextIncoming() {
  std::unique_ptr<Incoming> incoming;
  EXPECT_TRUE(PumpUntil([&] { return (incoming = listener_->Poll()) != nullptr; })) << "nobody asked to connect";
  return incoming;
}

ChannelPair FabricTest::Connect(ChannelOptions client, ChannelOptions server) {
  if (client.queue == nullptr) client.queue = client_.queue.get();
  if (server.queue == nullptr) server.queue = server_.queue.get();
  auto asking = client_.fabric->Connect(listener_->address(), client);
  EXPECT_TRUE(asking.ok()) << asking.status().ToString();
  const auto incoming = asking.ok() ? NextIncoming() : nullptr;
  if (incoming == nullptr) return {};
  auto accepted = incoming->Accept(server);
  EXPECT_TRUE(accepted.ok()) << accepted.status().ToString();
  if (!accepted.ok()) return {};
  ChannelPair pair{std::move(*asking), std::move(*accepted)};
  const auto first_is_connected = [](const End& end, const std::unique_ptr<Channel>& channel) {
    const std::vector<Event> events = end.Of(channel.get());
    return !events.empty() && events.front().kind == OpKind::kConnected;
  };
  EXPECT_TRUE(PumpUntil([&] { return first_is_connected(client_, pair.client); })) << "the connecting end";
  EXPECT_TRUE(PumpUntil([&] { return first_is_connected(server_, pair.server); })) << "the accepting end";
  EXPECT_TRUE(pair.client->connected());
  EXPECT_TRUE(pair.server->connected());
  for (End* end : {&client_, &server_}) {
    std::erase_if(end->events, [&](const Event& event) {
      const bool of_pair = event.channel == pair.client.get() || event.channel == pair.server.get();
      return of_pair && event.kind == OpKind::kConnected;
    });
  }
  return pair;
}

testing::AssertionResult FabricTest::Refused(const std::string& address) {
  auto asking = client_.fabric->Connect(address, Offer(client_, {}));
  Status status = asking.status();
  if (asking.ok()) {
    const Channel* channel = asking->get();
    if (auto closed = PumpUntil([&] { return !client_.Of(channel).empty(); }); !closed) return closed;
    if (client_.Of(channel).front().kind != OpKind::kClosed) return testing::AssertionFailure() << "somebody listens";
    status = Status(channel->error());
    std::erase_if(client_.events, [&](const Event& event) { return event.channel == channel; });
  }
  const std::string_view name = std::string_view(address).substr(address.find(':') + 1);
  if (status.code() == Code::kUnavailable && status.message().find(name) != std::string_view::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "kUnavailable and a message that names " << name << " are expected, not "
                                     << status.ToString();
}

void FabricTest::Connect(uint32_t message_depth) {
  Region* const of_client[] = {client_.region.get()};
  Region* const of_server[] = {server_.region.get()};
  ChannelOptions client = Offer(client_, of_client);
  client.message_depth = message_depth;
  ChannelPair pair = Connect(client, Offer(server_, of_server));
  ASSERT_NE(pair.client, nullptr);
  ASSERT_NE(pair.server, nullptr);
  client_.channel = std::move(pair.client);
  server_.channel = std::move(pair.server);
}

void FabricTest::Pump() {
  world_->Advance();
  server_.Poll();
  client_.Poll();
}

testing::AssertionResult FabricTest::PumpUntil(const std::function<bool()>& done) {
  for (size_t step = 0; step < world_->patience(); ++step) {
    if (done()) return testing::AssertionSuccess();
    const bool more = world_->Advance();
    server_.Poll();
    client_.Poll();
    if (!more) break;
  }
  if (done()) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure() << "it never happened. The client got:";
  for (const Event& event : client_.events) failure << ' ' << static_cast<int>(event.kind) << '#' << event.id;
  failure << ". The server got:";
  for (const Event& event : server_.events) failure << ' ' << static_cast<int>(event.kind) << '#' << event.id;
  return failure;
}

testing::AssertionResult FabricTest::PumpUntil(const End& end, OpKind kind, size_t count) {
  return PumpUntil([&, kind, count] { return end.Count(kind) >= count; });
}

void FabricTest::Settle() {
  for (size_t step = 0; step < world_->quiet(); ++step) {
    const bool more = world_->Advance();
    server_.Poll();
    client_.Poll();
    if (!more) return;
  }
}

WorkRequest Read(const End& end, size_t local, size_t size, uint64_t remote, uint64_t id) {
  WorkRequest request;
  request.kind = OpKind::kRead;
  request.id = id;
  request.local = end.bytes(local, size);
  request.remote.offset = remote;
  return request;
}

WorkRequest Write(const End& end, size_t local, size_t size, uint64_t remote, uint64_t id) {
  WorkRequest request = Read(end, local, size, remote, id);
  request.kind = OpKind::kWrite;
  return request;
}

WorkRequest WriteImm(const End& end, size_t local, size_t size, uint64_t remote, uint32_t imm, uint64_t id) {
  WorkRequest request = Read(end, local, size, remote, id);
  request.kind = OpKind::kWriteImm;
  request.imm = imm;
  return request;
}

WorkRequest Send(const End& end, size_t local, size_t size, uint64_t id) {
  WorkRequest request = Read(end, local, size, 0, id);
  request.kind = OpKind::kSend;
  return request;
}

WorkRequest Unsignaled(WorkRequest request) {
  request.signaled = false;
  return request;
}

Status Post(Channel& channel, const WorkRequest& request) { return channel.Post({&request, 1}); }

std::string Pattern(size_t size, uint64_t seed) {
  Random random(seed);
  std::string bytes(size, '\0');
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof(word), size - at));
  }
  return bytes;
}

void Put(std::span<std::byte> to, std::string_view bytes) { std::memcpy(to.data(), bytes.data(), bytes.size()); }

std::string KindName(const testing::TestParamInfo<WorldKind>& info) { return info.param.name; }
void PrintTo(const WorldKind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace erda::fabric

#include "sim/ports.h"

#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "format/hello.h"

namespace erda::sim {

namespace {

constexpr uint64_t kPoolBytes = 4 << 20;
constexpr format::GeometryWish kWish{kPoolBytes, 1, 64 << 10, 16 << 10, 0};

std::string AddressOf(size_t port) { return "sim:port" + std::to_string(port); }

// Each line of the trace begins with the time and the side of the event. Side 0 is the one that connected.
fabric::SimOptions Tracing(std::vector<std::string>* doorbells, bool windows, bool nic_writes) {
  fabric::SimOptions options;
  options.nic_writes = nic_writes;
  options.memory_windows = windows;
  options.trace = [doorbells](const std::string& line) {
    if (line.find("side 0: post ") == std::string::npos) return;
    std::string when = line.substr(0, line.find("side"));
    if (doorbells->empty() || doorbells->back() != when) doorbells->push_back(std::move(when));
  };
  return options;
}

}  // namespace

PortsTest::PortsTest(bool windows, bool nic_writes) : network_(1, Tracing(&doorbells_, windows, nic_writes)) {
  shard_options_.clock = &network_;
}

void PortsTest::ServeWithJournal() {
  auto made = server::FormattedPool::Open({"dram:", kPoolBytes, Nanoseconds(0)}, kWish);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  server::CrashPool::Image pool(kPoolBytes / sizeof(uint64_t));
  std::memcpy(pool.data(), (*made)->pool().bytes().data(), kPoolBytes);
  auto medium = std::make_unique<server::CrashPool>(
      server::CrashPool::Images{pool, pool, std::make_shared<server::StreamDisk>(1)}, nvm::Durability::kPowerSafe);
  disk_ = medium.get();
  medium_ = std::move(medium);
  Serve({format::FlushMethod::kServerFlush, format::FlushMethod::kServerFlush});
}

void PortsTest::Serve(const std::array<format::FlushMethod, kPorts>& flush_methods) {
  auto pool = medium_ ? server::FormattedPool::Take(std::move(medium_), {}, kWish)
                      : server::FormattedPool::Open({"dram:", kPoolBytes, Nanoseconds(0)}, kWish);
  ASSERT_TRUE(pool.ok()) << pool.status().ToString();
  pool_ = *std::move(pool);
  std::vector<server::Port> ports;
  regions_.reserve(kPorts);
  for (size_t i = 0; i < kPorts; ++i) {
    fabrics_.push_back(network_.CreateFabric("server"));
    regions_.push_back(*server::PoolRegions::Register(*fabrics_.back(), pool_->pool(), shard_options_.pool_writes));
    queues_.push_back(*fabrics_.back()->CreateQueue());
    ports.push_back({*fabrics_.back(), regions_.back(), *queues_.back(), flush_methods.at(i)});
    listeners_.push_back(*fabrics_.back()->Listen(AddressOf(i)));
  }
  auto shard = server::Shard::Create(*pool_, 0, ports, shard_options_);
  ASSERT_TRUE(shard.ok()) << shard.status().ToString();
  shard_ = *std::move(shard);
  ASSERT_TRUE(shard_->data().TakeUp().ok());
}

std::unique_ptr<client::Engine> PortsTest::MakeClient(const std::string& name, size_t port, PutPath path,
                                                      uint32_t user) {
  client::EngineOptions options;
  options.put_path = path;
  options.timeout = std::chrono::seconds(10);
  auto engine = client::Engine::Create(network_.CreateFabric(name, nullptr, user), AddressOf(port), options, network_);
  EXPECT_TRUE(engine.ok());
  return *std::move(engine);
}

void PortsTest::Admit() {
  for (size_t port = 0; port < kPorts; ++port) {
    if (auto incoming = listeners_[port]->Poll()) {
      const auto hello = LoadAs<format::HelloRequest>(incoming->peer_data());
      shard_->Admit(std::move(incoming), hello, port);
    }
  }
}

bool PortsTest::RunUntil(const std::vector<client::Engine*>& clients, const std::function<bool()>& done) {
  for (int step = 0; step < 200'000; ++step) {
    if (done()) return true;
    Admit();
    shard_->Poll();
    for (client::Engine* client : clients) client->Poll();
    if (!network_.Step()) network_.RunUntil(network_.Now() + Nanoseconds(1000));
  }
  return false;
}

std::string PortsTest::Get(client::Engine& client, const std::string& key) {
  std::string result;
  const auto done = [&](Result<std::string_view> value) {
    result = value.ok() ? std::string(*value) : std::string(CodeName(value.status().code()));
  };
  EXPECT_TRUE(client.Get(key, done).ok());
  EXPECT_TRUE(RunUntil({&client}, [&] { return !result.empty(); }));
  return result;
}

Code PortsTest::Put(client::Engine& client, const std::string& key, const std::string& value) {
  Code code = Code::kInternal;
  EXPECT_TRUE(client.Put(key, value, [&](const Status& status) { code = status.code(); }).ok());
  EXPECT_TRUE(RunUntil({&client}, [&] { return client.in_flight() == 0; }));
  return code;
}

}  // namespace erda::sim

#include "fabric/world.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include "fabric/sim/network.h"

namespace erda::fabric {

namespace {

class SimulatedWorld final : public World {
 public:
  SimulatedWorld(uint64_t seed, const SimOptions& options)
      : network_(seed, options), server_(network_.CreateFabric("server")), client_(network_.CreateFabric("client")) {}
  Fabric& server() override { return *server_; }
  Fabric& client() override { return *client_; }
  std::string NewAddress() override { return "sim:server" + std::to_string(++addresses_); }
  bool Advance() override { return network_.Step(); }
  [[nodiscard]] size_t patience() const override { return 10'000'000; }
  [[nodiscard]] size_t quiet() const override { return patience(); }

 private:
  SimNetwork network_;
  std::shared_ptr<Fabric> server_;
  std::shared_ptr<Fabric> client_;
  int addresses_ = 0;
};

// A temporary directory, removed with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = (std::filesystem::temp_directory_path() / "erda-fabric-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make a directory like " + path);
    path_ = path;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::shared_ptr<Fabric> Open(const std::string& address, Role role) {
  auto fabric = OpenFabric(address, role);
  if (!fabric.ok()) throw std::runtime_error(fabric.status().ToString());
  return *fabric;
}

class ShmWorld final : public World {
 public:
  ShmWorld() : server_(Open(NewAddress(), Role::kListen)), client_(Open(NewAddress(), Role::kConnect)) {}
  Fabric& server() override { return *server_; }
  Fabric& client() override { return *client_; }
  std::string NewAddress() override {
    return "shm:" + (directory_.path() / ("socket" + std::to_string(++addresses_))).string();
  }
  bool Advance() override {
    if (++steps_ % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    return true;
  }
  [[nodiscard]] size_t patience() const override { return 5'000'000; }
  [[nodiscard]] size_t quiet() const override { return 5'000; }

 private:
  TemporaryDirectory directory_;
  int addresses_ = 0;
  std::shared_ptr<Fabric> server_;
  std::shared_ptr<Fabric> client_;
  uint64_t steps_ = 0;
};

// Both ends are on this machine: the device must loop its packets back to itself.
class VerbsWorld final : public World {
 public:
  explicit VerbsWorld(const std::string& host)
      : host_(host.find(':') == std::string::npos ? host : "[" + host + "]"),
        server_(Open(NewAddress(), Role::kListen)),
        client_(Open(NewAddress(), Role::kConnect)) {}
  Fabric& server() override { return *server_; }
  Fabric& client() override { return *client_; }
  // Returns a port that this process has not used, and that a parallel test is not likely to use.
  std::string NewAddress() override {
    static std::atomic<uint32_t> ports{0};
    const char* first = std::getenv("ERDA_TEST_VERBS_PORT");
    const uint64_t base = (first == nullptr ? 18515 : std::stoul(first)) + static_cast<uint64_t>(::getpid()) % 64 * 512;
    return "verbs://" + host_ + ":" + std::to_string(base + ports++);
  }
  bool Advance() override {
    if (++steps_ % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    return true;
  }
  [[nodiscard]] bool whole_in_any_transfer() const override { return false; }
  // A minute, and 20 ms. A round trip takes 100 microseconds to some milliseconds.
  [[nodiscard]] size_t patience() const override { return 6'000'000; }
  [[nodiscard]] size_t quiet() const override { return 2'000; }

 private:
  const std::string host_;
  std::shared_ptr<Fabric> server_;
  std::shared_ptr<Fabric> client_;
  uint64_t steps_ = 0;
};

WorldKind Simulated(const std::string& name, uint64_t seed, SimOptions options = {}) {
  options.memory_windows = true;
  return {"sim" + name, [seed, options] { return std::make_unique<SimulatedWorld>(seed, options); }};
}

}  // namespace

std::vector<WorldKind> AllWorlds() {
  SimOptions at_once;  // Everything happens as soon as the contract permits.
  at_once.delay_min = at_once.delay_max = at_once.long_delay_max = Nanoseconds(0);
  SimOptions wild;  // Every tenth step takes very long.
  wild.long_delay_chance = 0.1;
  wild.pieces_max = 64;
  std::vector<WorldKind> worlds = RealWorlds();
  for (uint64_t seed = 1; seed <= 4; ++seed) worlds.push_back(Simulated("Seed" + std::to_string(seed), seed));
  worlds.push_back(Simulated("AtOnce", 5, at_once));
  worlds.push_back(Simulated("Wild", 6, wild));
  return worlds;
}

std::vector<WorldKind> RealWorlds() {
  std::vector<WorldKind> worlds = {{"shm", [] { return std::make_unique<ShmWorld>(); }}};
  if (const char* host = std::getenv("ERDA_TEST_VERBS"); host != nullptr && *host != '\0') {
    worlds.push_back({"verbs", [address = std::string(host)] { return std::make_unique<VerbsWorld>(address); }});
  }
  return worlds;
}

}  // namespace erda::fabric

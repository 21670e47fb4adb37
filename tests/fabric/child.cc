#include "fabric/child.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/shared_memory.h"
#include "fabric/fabric.h"

namespace erda::fabric {

namespace {

constexpr const char* kFlag = "--be";

// The state that both kinds of child share.
struct Place {
  static Result<Place> Open(const std::string& address, Role role, size_t bytes) {
    Place place;
    auto fabric = OpenFabric(address, role);
    if (!fabric.ok()) return fabric.status();
    place.fabric = *std::move(fabric);
    auto memory = SharedMemory::Create("erda-test-child", bytes);
    if (!memory.ok()) return memory.status();
    place.memory = *std::move(memory);
    auto region = place.fabric->Register(place.memory.view(), Access::kRemoteReadWrite);
    if (!region.ok()) return region.status();
    place.region = *std::move(region);
    place.offer = {place.region.get()};
    auto queue = place.fabric->CreateQueue();
    if (!queue.ok()) return queue.status();
    place.queue = *std::move(queue);
    return place;
  }
  [[nodiscard]] ChannelOptions Options() const {
    ChannelOptions options;
    options.queue = queue.get();
    options.offer = offer;
    return options;
  }
  size_t Poll() const {
    std::array<Completion, 8> completions;
    return queue->Poll(completions);
  }

  std::shared_ptr<Fabric> fabric;
  SharedMemory memory;
  std::unique_ptr<Region> region;
  std::vector<Region*> offer;
  std::unique_ptr<CompletionQueue> queue;
};

Status BeClient(const std::string& address) {
  auto place = Place::Open(address, Role::kConnect, 4096);
  if (!place.ok()) return place.status();
  auto channel = place->fabric->Connect(address, place->Options());
  if (!channel.ok()) return channel.status();
  WorkRequest send;
  send.kind = OpKind::kSend;
  send.local = place->memory.bytes().first(100);
  while ((*channel)->error().ok()) {
    place->Poll();
    const bool sent = (*channel)->connected() && (*channel)->Post({&send, 1}).ok();
    if (!sent) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return (*channel)->error();
}

Status BeWriter(const std::string& address) {
  constexpr size_t kBytes = 1 << 20;
  auto place = Place::Open(address, Role::kConnect, kBytes);
  if (!place.ok()) return place.status();
  auto channel = place->fabric->Connect(address, place->Options());
  if (!channel.ok()) return channel.status();
  while ((*channel)->error().ok() && !(*channel)->connected()) place->Poll();
  WorkRequest send;
  send.kind = OpKind::kSend;
  send.local = place->memory.bytes().first(100);
  Status status = (*channel)->Post({&send, 1});
  WorkRequest write;
  write.kind = OpKind::kWrite;
  write.local = place->memory.bytes();
  while (status.ok()) {
    place->Poll();
    status = (*channel)->Post({&write, 1});
  }
  return status;
}

Status BeServer(const std::string& address) {
  auto place = Place::Open(address, Role::kListen, 1 << 20);
  if (!place.ok()) return place.status();
  auto listener = place->fabric->Listen(address);
  if (!listener.ok()) return listener.status();
  std::vector<std::unique_ptr<Channel>> channels;
  for (;;) {
    if (const auto incoming = (*listener)->Poll()) {
      auto channel = incoming->Accept(place->Options());
      if (channel.ok()) channels.push_back(*std::move(channel));
    }
    if (place->Poll() == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace

Child::Child(const char* role, const std::string& address) : pid_(::fork()) {
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::execl("/proc/self/exe", "fabric_tests", kFlag, role, address.c_str(), nullptr);
  ::_exit(127);
}

void Child::Stop() const {
  ::kill(pid_, SIGSTOP);
  ::waitpid(pid_, nullptr, WUNTRACED);
}

void Child::Kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

bool Child::Run(int argc, char** argv, int* exit_code) {
  const std::span arguments(argv, static_cast<size_t>(argc));
  if (arguments.size() != 4 || std::string_view(arguments[1]) != kFlag) return false;
  const std::string_view role = arguments[2];
  const std::string address = arguments[3];
  const Status status = role == kServer ? BeServer(address) : role == kWriter ? BeWriter(address) : BeClient(address);
  std::fprintf(stderr, "child %s: %s\n", arguments[2], status.ToString().c_str());
  *exit_code = 1;
  return true;
}

}  // namespace erda::fabric

#include "bench/crowd/measure.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/shared_memory.h"
#include "bench/floors/server_process.h"
#include "bench/floors/temporary_folder.h"
#include "bench/ycsb/workload.h"
#include "erda/client.h"
#include "fabric/fabric.h"
#include "format/hello.h"
#include "format/messages.h"

namespace erda::crowd {

namespace {

using Time = std::chrono::steady_clock;

constexpr uint64_t kKeys = 1000;
constexpr uint32_t kSlots = 8;  // Of a silent client.
constexpr std::chrono::seconds kPatience{10};

// Connections that send nothing after their hello.
class SilentClients {
 public:
  static Result<std::unique_ptr<SilentClients>> Open(const std::string& address) {
    auto clients = std::unique_ptr<SilentClients>(new SilentClients(address));
    auto fabric = fabric::OpenFabric(address, fabric::Role::kConnect);
    if (!fabric.ok()) return fabric.status();
    clients->fabric_ = *std::move(fabric);
    auto queue = clients->fabric_->CreateQueue();
    if (!queue.ok()) return queue.status();
    clients->queue_ = *std::move(queue);
    auto memory = SharedMemory::Create("erda-silent", kSlots * sizeof(format::Reply));
    if (!memory.ok()) return memory.status();
    clients->replies_ = *std::move(memory);
    auto region = clients->fabric_->Register(clients->replies_.view(), fabric::Access::kRemoteReadWrite);
    if (!region.ok()) return region.status();
    clients->reply_region_ = *std::move(region);
    return clients;
  }
  Status ConnectUpTo(size_t clients) {
    channels_.reserve(clients);
    while (channels_.size() < clients) {
      if (auto status = Connect(); !status.ok()) {
        return {status.code(),
                "silent client " + std::to_string(channels_.size() + 1) + ": " + std::string(status.message())};
      }
    }
    return {};
  }

 private:
  explicit SilentClients(std::string address) : address_(std::move(address)) {}
  Status Connect() {
    format::HelloRequest hello{};
    hello.magic = format::kHelloMagic;
    hello.protocol_version = format::kProtocolVersion;
    hello.slots = kSlots;
    hello.client_id = channels_.size() + 1;
    fabric::Region* const offer[] = {reply_region_.get()};
    auto channel = fabric_->Connect(address_, {queue_.get(), offer, BytesOf(hello), kSlots});
    if (!channel.ok()) return channel.status();
    const auto give_up = Time::now() + kPatience;
    std::array<fabric::Completion, 4> completions;
    while (!(*channel)->connected()) {
      queue_->Poll(completions);
      if (!(*channel)->error().ok()) return (*channel)->error();
      if (Time::now() > give_up) return Status(Code::kTimeout, "the server does not answer");
    }
    channels_.push_back(*std::move(channel));
    return {};
  }

  const std::string address_;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  SharedMemory replies_;
  std::unique_ptr<fabric::Region> reply_region_;
  std::vector<std::unique_ptr<fabric::Channel>> channels_;
};

// Raises the limit in this process. The server inherits it. Each connection takes a descriptor in both processes.
void AllowDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

uint64_t ResidentBytes(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  uint64_t all = 0;
  uint64_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

Status RunStep(const Settings& settings, Client& client, Step& step) {
  const bench::Values values(settings.value_bytes);
  std::string value(settings.value_bytes, '\0');
  for (uint64_t i = 0; i < settings.operations; ++i) {
    const bench::Key key = bench::KeyOf(i % kKeys);
    values.Fill(value, i % kKeys, i);
    const auto begin = Time::now();
    if (auto put = client.Put(bench::AsView(key), value); !put.ok()) return put;
    const auto between = Time::now();
    if (const auto got = client.Get(bench::AsView(key)); !got.ok()) return got.status();
    const auto end = Time::now();
    step.put.Record(static_cast<uint64_t>((between - begin).count()));
    step.get.Record(static_cast<uint64_t>((end - between).count()));
  }
  return {};
}

}  // namespace

Result<Report> Measure(const Settings& settings, const std::string& program) {
  AllowDescriptors();
  const floors::TemporaryFolder folder;
  auto serve = floors::ServeInDram(folder);
  if (!serve.ok()) return serve.status();
  serve->max_clients = static_cast<uint32_t>(settings.silent.back() + 2);
  auto server = floors::ServerProcess::StartBeside(program, *serve);
  if (!server.ok()) return server.status();
  auto client = Client::Connect((*server)->ready().address, {});
  if (!client.ok()) return client.status();
  Report report;
  for (const uint64_t silent : settings.silent) report.steps.push_back({silent, {}, {}, 0});
  for (uint64_t round = 0; round < settings.rounds; ++round) {
    auto clients = SilentClients::Open((*server)->ready().address);
    if (!clients.ok()) return clients.status();
    for (Step& step : report.steps) {
      if (auto status = (*clients)->ConnectUpTo(step.silent); !status.ok()) return status;
      if (auto status = RunStep(settings, **client, step); !status.ok()) return status;
      step.server_bytes = ResidentBytes((*server)->ready().pid);
    }
  }
  client->reset();
  const Status stopped = (*server)->Stop();
  return stopped.ok() ? Result<Report>(std::move(report)) : stopped;
}

}  // namespace erda::crowd

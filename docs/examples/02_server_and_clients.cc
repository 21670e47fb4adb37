// 02: a server in this process, and several clients, each on a separate thread. Other processes of this machine can
// connect to the server, too. The program erda-server is such a server.
//
// Prints:
//   a volatile pool, 2 shards
//   300 puts, 300 keys
//   stopped: no server listens there
#include <erda/client.h>
#include <erda/server.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <future>
#include <string>
#include <string_view>

#include "example.h"

namespace {

// Only one thread at a time may use a Client, so each thread connects one.
void PutHundred(const std::string& address, int number) {
  const auto client = example::Check(erda::Client::Connect(address), "connect");
  for (int i = 0; i < 100; ++i) {
    const std::string key = std::to_string(number) + "/" + std::to_string(i);
    example::Check(client->Put(key, "value"), "put " + key);
  }
}

}  // namespace

int main() try {
  const example::TemporaryFolder folder;
  const std::string address = "shm:" + folder.Path("socket");  // over RDMA: "verbs://host:port"
  erda::ServerOptions options;
  options.pool = "dram:";  // or a file, or a DAX device, which keep their values
  options.pool_size = uint64_t{64} << 20;
  options.listen = {address};
  options.shards = 2;                             // threads, each with its part of the keys
  options.on_event = [](std::string_view line) {  // called on the server's threads
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  };
  const auto server = example::Check(erda::Server::Open(options), "open");
  example::Check(server->Start(), "start");
  std::printf("a %s pool, %u shards\n", server->durability().c_str(), server->stats().shards);

  std::future<void> clients[3];
  int number = 0;
  for (auto& client : clients) client = std::async(std::launch::async, PutHundred, address, number++);
  for (auto& client : clients) client.get();  // throws the exception of its thread, if it has one

  const erda::ServerStats stats = server->stats();
  std::printf("%ju puts, %ju keys\n", uintmax_t{stats.puts}, uintmax_t{stats.keys});
  example::Check(server->Stop(), "stop");
  const auto late = erda::Client::Connect(address);
  example::Require(late.status().code() == erda::Code::kUnavailable, "a stopped server is unavailable");
  std::printf("stopped: no server listens there\n");
  return 0;
} catch (const std::exception& failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

// 08: which failures a put survives once it has returned. That depends on the pool, and on the ack that the client asks
// for. A DAX device or a file on a DAX file system is power-safe, and there the two acks differ: docs/guarantees.md.
//
// Prints:
//   dram: is volatile, flush method none
//     kPlaced survives the death of its client
//     kPersisted survives the death of its client
//   a file is process-safe, flush method none
//     kPlaced survives the death of any process
//     kPersisted survives the death of any process
#include <erda/client.h>
#include <erda/server.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "example.h"

namespace {

const char* WhatSurvives(const std::string& durability, erda::Ack ack) {
  if (durability == "volatile") return "the death of its client";
  const bool persisted = durability == "power-safe" && ack == erda::Ack::kPersisted;
  return persisted ? "a power cut" : "the death of any process";
}

void Show(const char* name, const std::string& pool, const std::string& address) {
  erda::ServerOptions options;
  options.pool = pool;
  options.pool_size = uint64_t{64} << 20;
  options.listen = {address};
  const auto server = example::Check(erda::Server::Open(options), "open");
  example::Check(server->Start(), "start");
  // Each fabric has a flush method, for values that clients write. A client gets both texts by ServerInfo().
  const std::string flush_method = server->fabrics().at(0).flush_method;
  std::printf("%s is %s, flush method %s\n", name, server->durability().c_str(), flush_method.c_str());

  for (const erda::Ack ack : {erda::Ack::kPlaced, erda::Ack::kPersisted}) {
    erda::ClientOptions how;
    how.ack = ack;
    const auto client = example::Check(erda::Client::Connect(address, how), "connect");
    example::Check(client->Put("key", "value"), "put");
    std::printf("  %s survives %s\n", ack == erda::Ack::kPlaced ? "kPlaced" : "kPersisted",
                WhatSurvives(server->durability(), ack));
  }
}

}  // namespace

int main() try {
  const example::TemporaryFolder folder;
  const std::string address = "shm:" + folder.Path("socket");
  Show("dram:", "dram:", address);
  Show("a file", folder.Path("pool"), address);
  return 0;
} catch (const std::exception& failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

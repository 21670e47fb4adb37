// 01: a client in a program: it puts, gets and deletes a key. Give it the address of a server, as in
//   01_embed_client shm:/run/erda/socket
// Without an address it starts a server in this process.
//
// Prints:
//   greeting: hello
//   without it: not found
#include <erda/client.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "example.h"

int main(int argc, char** argv) try {
  std::optional<example::OwnServer> own;
  if (argc < 2) own.emplace();
  const std::string address = own ? own->address() : argv[1];

  erda::ClientOptions options;  // The defaults suit most programs. Here are two examples.
  options.ack = erda::Ack::kPersisted;
  options.timeout = std::chrono::seconds(2);
  auto connected = erda::Client::Connect(address, options);
  // A Result has a value, or a Status. A Status has a code for the program, and a message for people.
  if (!connected.ok()) {
    std::fprintf(stderr, "connect: %s\n", connected.status().ToString().c_str());
    return 1;
  }
  const auto client = *std::move(connected);

  // From here on example::Check does the same.
  example::Check(client->Put("greeting", "hello"), "put");
  const std::string value = example::Check(client->Get("greeting"), "get");
  std::printf("greeting: %s\n", value.c_str());

  // The get of an absent key is not a failure of the store, but it has a code, too.
  example::Check(client->Delete("greeting"), "delete");
  const auto gone = client->Get("greeting");
  example::Require(gone.status().code() == erda::Code::kNotFound, "a deleted key is not found");
  std::printf("without it: %s\n", gone.status().ToString().c_str());
  return 0;
} catch (const std::exception& failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

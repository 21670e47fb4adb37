// 01: a client in a program: put, get and delete of a key. At the server of an address, as in
//   01_embed_client shm:/run/erda/socket
// or, without one, at a server of its own in this process.
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

  erda::ClientOptions options;  // The defaults are good; these are the most likely to be changed.
  options.ack = erda::Ack::kPersisted;
  options.timeout = std::chrono::seconds(2);
  auto connected = erda::Client::Connect(address, options);
  // A Result has a value, or a Status: a code to act on, and a message that names what failed.
  if (!connected.ok()) {
    std::fprintf(stderr, "connect: %s\n", connected.status().ToString().c_str());
    return 1;
  }
  const auto client = *std::move(connected);

  // From here on the same is example::Check.
  example::Check(client->Put("greeting", "hello"), "put");
  const std::string value = example::Check(client->Get("greeting"), "get");
  std::printf("greeting: %s\n", value.c_str());

  // A key without a value is no failure of the store, but has a code, too.
  example::Check(client->Delete("greeting"), "delete");
  const auto gone = client->Get("greeting");
  example::Require(gone.status().code() == erda::Code::kNotFound, "a deleted key is not found");
  std::printf("without it: %s\n", gone.status().ToString().c_str());
  return 0;
} catch (const std::exception& failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

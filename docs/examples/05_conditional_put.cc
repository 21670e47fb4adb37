// 05: conditions. A put with a condition takes effect only if the key still has the version that the client read, or is
// absent. So several clients change a value without a lock, and no change is lost.
//
// Prints:
//   created
//   created again: conflict
//   2 clients added 250 each: 500
//   counted to: 7
#include <erda/client.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <future>
#include <string>

#include "example.h"

namespace {

constexpr int kAdditions = 250;

// Reads the total, adds to it, and puts it if no other client was faster. Otherwise it tries again.
void Add(const std::string& address) {
  const auto client = example::Check(erda::Client::Connect(address), "connect");
  for (int done = 0; done < kAdditions;) {
    const erda::Versioned read = example::Check(client->GetVersioned("total"), "get");
    const std::string sum = std::to_string(std::stoi(read.value) + 1);
    const auto put = client->Put("total", sum, erda::PutOptions{.if_version = read.version});
    if (put.status().code() == erda::Code::kConflict) continue;
    example::Check(put.status(), "put");
    ++done;
  }
}

}  // namespace

int main() try {
  const example::OwnServer server;
  const auto client = example::Check(erda::Client::Connect(server.address()), "connect");

  const erda::PutOptions if_absent{.if_version = erda::kAbsent};
  const uint64_t version = example::Check(client->Put("total", "0", if_absent), "create");
  example::Require(version > erda::kAbsent, "a put says the version of its value");
  std::printf("created\n");
  const auto again = client->Put("total", "0", if_absent);
  example::Require(again.status().code() == erda::Code::kConflict, "a key is created once");
  std::printf("created again: conflict\n");

  auto one = std::async(std::launch::async, Add, server.address());
  auto other = std::async(std::launch::async, Add, server.address());
  one.get();
  other.get();
  const std::string total = example::Check(client->Get("total"), "get");
  std::printf("2 clients added %d each: %s\n", kAdditions, total.c_str());

  // For numbers of 8 bytes there is a shorter way: the server adds in one step.
  example::Check(client->Increment("visits", 5).status(), "increment");
  const int64_t sum = example::Check(client->Increment("visits", 2), "increment");
  std::printf("counted to: %jd\n", intmax_t{sum});
  return 0;
} catch (const std::exception& failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

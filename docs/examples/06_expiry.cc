// 06: values that expire, as a lease. A client takes the lease if it is absent. If its holder dies, the lease expires.
//
// Prints:
//   a has the lease
//   b has to wait: conflict
//   b has the lease
#include <erda/client.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string_view>
#include <thread>

#include "example.h"

namespace {

// Returns the version of the lease, or kConflict if another client has it.
erda::Result<uint64_t> Take(erda::Client& client, std::string_view who) {
  return client.Put("lease", who, erda::PutOptions{.if_version = erda::kAbsent, .ttl = std::chrono::hours(1)});
}

}  // namespace

int main() try {
  const example::OwnServer server;
  const auto a = example::Check(erda::Client::Connect(server.address()), "connect");
  const auto b = example::Check(erda::Client::Connect(server.address()), "connect");

  const uint64_t version = example::Check(Take(*a, "a"), "take the lease");
  std::printf("a has the lease\n");
  example::Require(Take(*b, "b").status().code() == erda::Code::kConflict, "one has it");
  std::printf("b has to wait: conflict\n");
  const erda::Versioned lease = example::Check(b->GetVersioned("lease"), "get");
  example::Require(lease.expires.has_value(), "a get says when it expires, by the server's clock");

  // The holder renews its lease by its version, with a new time to live. Here the time is short, and the lease expires.
  const auto renewed =
      a->Put("lease", "a", erda::PutOptions{.if_version = version, .ttl = std::chrono::milliseconds(50)});
  example::Check(renewed.status(), "renew the lease");
  for (;;) {
    const auto taken = Take(*b, "b");
    if (taken.ok()) break;
    if (taken.status().code() != erda::Code::kConflict) example::Check(taken.status(), "take the lease");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::printf("%s has the lease\n", example::Check(a->Get("lease"), "get").c_str());
  return 0;
} catch (const std::exception& failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

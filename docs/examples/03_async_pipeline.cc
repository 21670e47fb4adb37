// 03: many outstanding operations. The asynchronous calls return at once, and callbacks report later how each ended.
//
// Prints:
//   10000 puts, 0 failed
//   10000 gets, 0 failed
#include <erda/client.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "example.h"

namespace {

constexpr int kOperations = 10'000;

struct Outcome {
  int done = 0;
  int failed = 0;
};

std::string KeyOf(int i) { return "key" + std::to_string(i); }

// Starts all operations, and waits for the last ones. If a start fails, the callback of that operation does not run.
void RunAll(erda::Client& client, const std::function<erda::Status(int)>& start) {
  for (int i = 0; i < kOperations; ++i) example::Check(start(i), "start an operation");
  example::Check(client.Drain(), "wait for the rest");
}

}  // namespace

int main() try {
  const example::OwnServer server;
  erda::ClientOptions options;
  options.queue_depth = 32;      // the most outstanding operations
  options.wait_for_room = true;  // a start waits while that many are outstanding, and does not fail
  const auto client = example::Check(erda::Client::Connect(server.address(), options), "connect");

  // A callback runs inside a call that waits or Poll, on this thread. It must neither throw nor wait. A program that
  // has other work between the starts calls Poll now and then, or Wait for some of the operations.
  Outcome puts;
  RunAll(*client, [&](int i) {
    return client->PutAsync(KeyOf(i), "value" + std::to_string(i), [&puts](erda::Status status) {
      ++puts.done;
      if (!status.ok()) ++puts.failed;
    });
  });
  std::printf("%d puts, %d failed\n", puts.done, puts.failed);

  Outcome gets;
  RunAll(*client, [&](int i) {
    return client->GetAsync(KeyOf(i), [&gets, i](erda::Result<std::string_view> value) {
      ++gets.done;  // The view ends with the callback: copy a value that you need later.
      if (!value.ok() || *value != "value" + std::to_string(i)) ++gets.failed;
    });
  });
  std::printf("%d gets, %d failed\n", gets.done, gets.failed);
  return puts.failed + gets.failed == 0 ? 0 : 1;
} catch (const std::exception& failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

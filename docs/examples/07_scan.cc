// 07: a scan of all keys, page by page. A scan stops no client: here deletes run between its pages.
//
// Prints:
//   3000 keys, of which 1000 were old
//   2000 keys are left
#include <erda/client.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>

#include "example.h"

namespace {

void ForEachKey(erda::Client& client, bool values, const std::function<void(const erda::ScannedKey&)>& tell) {
  erda::ScanOptions options;
  options.keys = 200;       // about the number of keys in a page
  options.values = values;  // a scan without values costs less
  for (;;) {
    const erda::ScanPage page = example::Check(client.Scan(options), "scan");
    example::Require(page.damaged == 0, "no stored key is damaged");
    for (const erda::ScannedKey& key : page.keys) tell(key);
    if (!page.next) return;
    options.cursor = *page.next;  // A number, which you may store. Another client may go on with it.
  }
}

}  // namespace

int main() try {
  const example::OwnServer server;
  const auto client = example::Check(erda::Client::Connect(server.address()), "connect");
  for (int i = 0; i < 3000; ++i) {
    example::Check(client->Put("key" + std::to_string(i), i % 3 == 0 ? "old" : "new"), "put");
  }

  int keys = 0;
  int old = 0;
  ForEachKey(*client, true, [&](const erda::ScannedKey& key) {
    ++keys;
    if (key.value != "old") return;
    ++old;
    // Delete the key only if it still has the value that was read, and not a newer one.
    example::Check(client->Delete(key.key, erda::DeleteOptions{.if_version = key.version}), "delete " + key.key);
  });
  std::printf("%d keys, of which %d were old\n", keys, old);
  keys = 0;
  ForEachKey(*client, false, [&](const erda::ScannedKey&) { ++keys; });
  std::printf("%d keys are left\n", keys);
  return 0;
} catch (const std::exception& failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

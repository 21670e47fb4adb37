// 04: puts of many keys in one call, and a get of many keys. Each call has as many operations in flight as queue_depth
// allows.
//
// Prints:
//   apple: red
//   pear: not found
//   plum: blue
#include <erda/client.h>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "example.h"

int main() try {
  const example::OwnServer server;
  const auto client = example::Check(erda::Client::Connect(server.address()), "connect");
  const std::vector<erda::KeyValue> puts = {{"apple", "red"}, {"plum", "blue"}};
  // One result for each put.
  for (const auto& version : client->MultiPut(puts)) example::Check(version.status(), "put");

  const std::vector<std::string_view> keys = {"apple", "pear", "plum"};
  const auto values = client->MultiGet(keys);  // one result for each key, in the order of the keys
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto& value = values[i];
    if (!value.ok() && value.status().code() != erda::Code::kNotFound) example::Check(value.status(), "get");
    std::printf("%s: %s\n", std::string(keys[i]).c_str(), value.ok() ? value->c_str() : "not found");
  }
  return 0;
} catch (const std::exception& failed) {
  std::fprintf(stderr, "%s\n", failed.what());
  return 1;
}

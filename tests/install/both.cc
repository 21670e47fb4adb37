// A server and a client in one process, from an installed Erda: both <socket path>.
#include <erda/client.h>
#include <erda/server.h>

#include <cstdio>
#include <string>
#include <utility>

namespace {

int Fail(const char* what, const erda::Status& status) {
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  return 1;
}

int UseClient(const std::string& address) {
  auto client = erda::Client::Connect(address);
  if (!client.ok()) return Fail("connect", client.status());
  if (auto status = (*client)->Put("key", "value"); !status.ok()) return Fail("put", status);
  auto value = (*client)->Get("key");
  if (!value.ok()) return Fail("get", value.status());
  if (*value != "value") return Fail("get", erda::Status(erda::Code::kCorruption, *value));
  auto buffer = (*client)->MakeBuffer(100);
  if (!buffer.ok()) return Fail("make a buffer", buffer.status());
  const auto size = (*client)->Get("key", *buffer);
  if (!size.ok() || *size != 5) return Fail("get into a buffer", size.status());
  erda::Buffer moved = *std::move(buffer);
  if (auto status = (*client)->Put("key", moved, 5); !status.ok()) return Fail("put from a buffer", status);
  if (auto status = (*client)->Delete("key"); !status.ok()) return Fail("delete", status);
  value = (*client)->Get("key");
  if (value.status().code() != erda::Code::kNotFound) return Fail("get of a deleted key", value.status());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: both <socket path>\n");
    return 2;
  }
  erda::ServerOptions options;
  options.pool = "dram:";
  options.pool_size = uint64_t{64} << 20;
  options.listen = {std::string("shm:") + argv[1]};
  auto server = erda::Server::Open(options);
  if (!server.ok()) return Fail("open", server.status());
  if (auto status = (*server)->Start(); !status.ok()) return Fail("start", status);
  const int failed = UseClient((*server)->addresses().at(0));
  if (auto status = (*server)->Stop(); !status.ok()) return Fail("stop", status);
  if (failed == 0) std::printf("put, get and delete work\n");
  return failed;
}

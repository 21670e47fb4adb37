// A program that links the client library alone: client_only <socket path where nobody listens>.
#include <erda/client.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: client_only <socket path>\n");
    return 2;
  }
  erda::ClientOptions options;
  options.timeout = std::chrono::milliseconds(100);
  const auto client = erda::Client::Connect(std::string("shm:") + argv[1], options);
  std::printf("%s\n", client.status().ToString().c_str());
  const auto code = client.status().code();
  return code == erda::Code::kUnavailable || code == erda::Code::kTimeout ? 0 : 1;
}

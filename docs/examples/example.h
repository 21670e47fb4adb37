// Shared by the examples: checks that throw, a temporary folder, and a server for examples about clients. Example 02
// shows how to open a server.
#pragma once

#include <erda/server.h>
#include <erda/status.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace example {

// Throws if a call failed; main prints the message. (Erda itself never throws.)
inline void Check(const erda::Status& status, const std::string& what) {
  if (!status.ok()) throw std::runtime_error(what + ": " + status.ToString());
}
template <class T>
T Check(erda::Result<T> result, const std::string& what) {
  Check(result.status(), what);
  return *std::move(result);
}

// Throws if the store does not do what the example expects.
inline void Require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("this is expected, and is not so: " + what);
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "erda-example.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "cannot make a folder like " + name);
    }
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string Path(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// A server in this process, with a pool in DRAM, which ends with the server.
class OwnServer {
 public:
  OwnServer() {
    erda::ServerOptions options;
    options.pool = "dram:";
    options.pool_size = uint64_t{64} << 20;
    options.listen = {"shm:" + folder_.Path("socket")};
    server_ = Check(erda::Server::Open(options), "open a server");
    Check(server_->Start(), "start the server");
  }
  [[nodiscard]] std::string address() const { return server_->addresses().front(); }

 private:
  const TemporaryFolder folder_;
  std::unique_ptr<erda::Server> server_;
};

}  // namespace example

// What the examples share: an end that says what failed, a folder that goes, and a server for those that are about
// clients. 02 shows how a server is opened.
#pragma once

#include <erda/server.h>
#include <erda/status.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace example {

// Throws what failed, for main to say. (Erda itself never throws.)
inline void Check(const erda::Status& status, const std::string& what) {
  if (!status.ok()) throw std::runtime_error(what + ": " + status.ToString());
}
template <class T>
T Check(erda::Result<T> result, const std::string& what) {
  Check(result.status(), what);
  return *std::move(result);
}

// What an example expects of the store.
inline void Require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("this does not hold: " + what);
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "erda-example.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + name);
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

// A server in this process, of a pool that is gone with it.
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

#include "nvm/front.h"

#include <sys/stat.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "nvm/pmr_pool.h"

namespace erda::nvm {

namespace {

constexpr std::string_view kPmr = "pmr:";

Status InFront(const std::string& address, Code code, std::string_view what) {
  return {code, ("front " + address + ": ").append(what)};
}

}  // namespace

Result<std::unique_ptr<Pool>> OpenFront(const FrontOptions& options) {
  const std::string& address = options.address;
  const bool is_pmr = address.starts_with(kPmr);
  const std::string path = is_pmr ? address.substr(kPmr.size()) : address;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    const Code code = errno == ENOENT || errno == ENOTDIR ? Code::kNotFound : ErrnoStatus("").code();
    return InFront(address, code, std::strerror(errno));
  }
  auto pool = is_pmr ? OpenPmr(path) : Pool::Open({.path = path});
  if (!pool.ok()) return InFront(address, pool.status().code(), pool.status().message());
  if ((*pool)->size() < options.least_size) {
    return InFront(
        address, Code::kInvalidArgument,
        "has " + std::to_string((*pool)->size()) + " bytes, and " + std::to_string(options.least_size) + " are needed");
  }
  if ((*pool)->durability() != Durability::kPowerSafe && !options.any_file) {
    return InFront(address, Code::kInvalidArgument,
                   "a power cut can take its bytes. It must be a DAX device, a file on a DAX file system, or pmr: and "
                   "the persistent memory region of an NVMe disk");
  }
  return pool;
}

}  // namespace erda::nvm

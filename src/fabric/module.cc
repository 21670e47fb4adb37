#include "fabric/module.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace erda::fabric {

namespace {

constexpr const char* kFile = "liberda-verbs.so";

// Returns the files that the module may be. It is beside the library that contains this code, in an installation or a
// build folder. For a program that is linked with the objects, it is beside the program's libraries.
std::vector<std::filesystem::path> Candidates() {
  std::vector<std::filesystem::path> candidates;
  if (const char* folder = ::secure_getenv("ERDA_MODULES"); folder != nullptr && *folder != '\0') {
    candidates.push_back(std::filesystem::path(folder) / kFile);
    return candidates;
  }
  Dl_info own{};
  link_map* loaded = nullptr;
  if (::dladdr1(reinterpret_cast<const void*>(&Candidates), &own, reinterpret_cast<void**>(&loaded), RTLD_DL_LINKMAP) ==
      0) {
    return candidates;
  }
  std::error_code failed;
  const bool in_program = loaded->l_name == nullptr || *loaded->l_name == '\0';
  const auto file = std::filesystem::canonical(in_program ? "/proc/self/exe" : loaded->l_name, failed);
  if (failed) return candidates;
  const auto folder = file.parent_path();
  candidates.push_back(folder / "erda" / kFile);
  candidates.push_back(folder.parent_path() / ERDA_LIBRARY_FOLDER / "erda" / kFile);
  candidates.push_back(folder.parent_path() / "lib" / "erda" / kFile);
  return candidates;
}

Status LoadError(const std::string& reason) {
  std::string message = "verbs addresses need the module " + std::string(kFile) + ": " + reason;
  if (reason.find("libibverbs") != std::string::npos || reason.find("librdmacm") != std::string::npos) {
    message += "; install rdma-core (on Debian: apt-get install rdma-core libibverbs1 librdmacm1 ibverbs-providers)";
  }
  return {Code::kUnavailable, message};
}

}  // namespace

Result<std::shared_ptr<Fabric>> OpenVerbsModule(std::string_view address, Role role) {
  std::string tried;
  for (const auto& file : Candidates()) {
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
      tried += (tried.empty() ? "" : ", ") + file.string();
      continue;
    }
    // Never unloaded: its objects may live as long as the process.
    void* module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) return LoadError(::dlerror());
    auto* open = reinterpret_cast<ModuleEntry*>(::dlsym(module, kModuleEntry));
    if (open == nullptr) return LoadError(file.string() + " is not a module of Erda");
    Status error;
    std::shared_ptr<Fabric> fabric(open(ERDA_VERSION, address, role, &error));
    if (!fabric) return error;
    return fabric;
  }
  return LoadError("it is not installed (on Debian: install the package erda-verbs). These files do not exist: " +
                   tried);
}

}  // namespace erda::fabric

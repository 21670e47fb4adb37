#include "fabric/fabric.h"

#include "fabric/module.h"
#include "fabric/shm/shm_fabric.h"
#include "fabric/shm/socket.h"

namespace erda::fabric {

Result<std::shared_ptr<Fabric>> OpenFabric(std::string_view address, Role role) {
  if (address.starts_with("shm:")) {
    if (auto path = shm::PathOf(address); !path.ok()) return path.status();
    return std::shared_ptr<Fabric>(std::make_shared<shm::ShmFabric>());
  }
  if (address.starts_with("verbs:")) return OpenVerbsModule(address, role);
  return Status(Code::kInvalidArgument,
                std::string(address).append(": not an address like shm:/path/to/socket or verbs://host:port"));
}

}  // namespace erda::fabric

// Fabrics that are modules of their own, loaded when an address asks for them, so that the libraries do not need what
// the modules are linked with.
#pragma once

#include <memory>
#include <string_view>

#include "fabric/fabric.h"

namespace erda::fabric {

// The fabric of liberda-verbs.so. kUnavailable if the module, or a library that it needs, is not installed: the message
// names the package.
Result<std::shared_ptr<Fabric>> OpenVerbsModule(std::string_view address, Role role);

// What the module exports, by this name. It returns null and sets *error if it cannot open the fabric.
inline constexpr const char* kModuleEntry = "erda_fabric_open";
using ModuleEntry = Fabric*(std::string_view version, std::string_view address, Role role, Status* error);

}  // namespace erda::fabric

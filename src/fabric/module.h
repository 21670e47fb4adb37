// Fabrics in separate modules, which are loaded when an address asks for them. So Erda's libraries do not depend on the
// libraries of the modules. Any thread may call it.
#pragma once

#include <memory>
#include <string_view>

#include "fabric/fabric.h"

namespace erda::fabric {

// Returns the fabric of liberda-verbs.so. Returns kUnavailable if the module, or a library that it needs, is not
// installed; the message names the package.
Result<std::shared_ptr<Fabric>> OpenVerbsModule(std::string_view address, Role role);

// The name of the function that the module exports. It returns null and sets *error if it cannot open the fabric.
inline constexpr const char* kModuleEntry = "erda_fabric_open";
using ModuleEntry = Fabric*(std::string_view version, std::string_view address, Role role, Status* error);

}  // namespace erda::fabric

// Where the build of the running test program is. It is asked for at run time, so that no object holds the path of the
// tree and clones can share objects through ccache.
#pragma once

#include <filesystem>
#include <string>

namespace erda {

// The folder of the programs. Test programs are in build/tests, programs in build/bin.
inline std::string BinDir() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin").string();
}

}  // namespace erda

// verbs addresses on a machine that lacks something for them.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "programs/fixture.h"

namespace erda {
namespace {

class Verbs : public ProgramsTest {
 protected:
  static constexpr const char* kNobody = "verbs://192.0.2.1:7700";  // An address for documentation, of no machine.

  // Runs with a setting in its environment.
  static Ended CliWith(const std::string& setting, const Words& arguments) {
    Words words = {"/usr/bin/env", setting};
    const Words command = Command("erda-cli", arguments);
    words.insert(words.end(), command.begin(), command.end());
    return Process(words).Wait();
  }
};

TEST_F(Verbs, AHostThatNobodyReachesIsUnavailable) {
  const Ended ended = Run("erda-cli", {"--address", kNobody, "get", "key"});
  ExpectRefused(ended, 3, "192.0.2.1");
}

TEST_F(Verbs, ShmIsServedWithoutTheVerbsModule) {
  const auto server = StartServer();
  const std::string without = "ERDA_MODULES=" + Path("nothing");
  ExpectRefused(CliWith(without, {"--address", kNobody, "get", "key"}), 3, "liberda-verbs.so: it is not installed");
  ExpectFine(CliWith(without, {"--address", Address(), "put", "key", "value"}));
  StopServer(*server);
}

// An empty file stands in place of the real library, like a missing one.
TEST_F(Verbs, ShmIsServedWithoutRdmaCoreAndTheErrorNamesThePackage) {
  const auto server = StartServer();
  for (const std::string library : {"libibverbs.so.1", "librdmacm.so.1"}) {
    std::filesystem::create_directory(Path(library));
    WriteFile(Path(library) + "/" + library, "");
    const std::string without = "LD_LIBRARY_PATH=" + Path(library);
    const Ended ended = CliWith(without, {"--address", kNobody, "get", "key"});
    ExpectRefused(ended, 3, library);
    ExpectRefused(ended, 3, "apt-get install rdma-core");
    ExpectFine(CliWith(without, {"--address", Address(), "put", "key", "value"}));
  }
  StopServer(*server);
}

TEST_F(Verbs, AWrongAddressIsBadUsage) {
  for (const std::string address : {"verbs:", "verbs://host", "verbs://host:1?gid=1"}) {
    ExpectRefused(Run("erda-cli", {"--address", address, "get", "key"}), 2, address);
  }
}

}  // namespace
}  // namespace erda

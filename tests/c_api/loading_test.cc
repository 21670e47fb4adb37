// A program that loads the shared libraries itself: both at once, and unloads them again.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "base/temporary_folder.h"
#include "erda/erda.h"
#include "paths.h"

namespace erda {
namespace {

class Library {
 public:
  explicit Library(const char* name) : file_(BinDir() + "/../lib/" + name) {
    handle_ = ::dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle_, nullptr) << ::dlerror();
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    EXPECT_EQ(::dlclose(handle_), 0);
    EXPECT_EQ(::dlopen(file_.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr) << file_ << " is still there";
  }
  template <class Function>
  Function* Get(Function* /*like*/, const char* name) const {
    auto* const function = reinterpret_cast<Function*>(::dlsym(handle_, name));
    EXPECT_NE(function, nullptr) << name;
    return function;
  }

 private:
  const std::string file_;
  void* handle_;
};

#define FROM(library, name) (library).Get(&(name), #name)

TEST(LoadingNoSanitizer, BothLibrariesShareNothingAndCanBeUnloaded) {
  const TemporaryFolder folder;
  const std::string address = "shm:" + (folder / "socket").string();
  const char* const listen = address.c_str();
  for (int i = 0; i < 3; ++i) {
    const Library server_library("liberda-server.so.0");
    const Library client_library("liberda-client.so.0");
    auto* const server_error = FROM(server_library, erda_server_error);
    auto* const client_error = FROM(client_library, erda_client_error);
    erda_client* client = nullptr;
    EXPECT_EQ(FROM(client_library, erda_client_connect)(listen, nullptr, &client), ERDA_UNAVAILABLE);
    EXPECT_STRNE(client_error(), "");
    EXPECT_STREQ(server_error(), "");

    erda_server_options options;
    FROM(server_library, erda_server_options_init)(&options, sizeof(options));
    options.pool = "dram:";
    options.pool_size = uint64_t{64} << 20;
    options.listen = &listen;
    options.listen_count = 1;
    erda_server* server = nullptr;
    ASSERT_EQ(FROM(server_library, erda_server_open)(&options, &server), ERDA_OK) << server_error();
    ASSERT_EQ(FROM(server_library, erda_server_start)(server), ERDA_OK) << server_error();
    ASSERT_EQ(FROM(client_library, erda_client_connect)(listen, nullptr, &client), ERDA_OK) << client_error();
    EXPECT_EQ(FROM(client_library, erda_client_put)(client, "key", 3, "value", 5, nullptr, nullptr), ERDA_OK);
    size_t size = 0;
    char value[5];
    EXPECT_EQ(FROM(client_library, erda_client_get)(client, "key", 3, value, sizeof(value), &size), ERDA_OK);
    EXPECT_EQ(std::string(value, size), "value");
    FROM(client_library, erda_client_close)(client);
    FROM(server_library, erda_server_close)(server);
  }
}

}  // namespace
}  // namespace erda

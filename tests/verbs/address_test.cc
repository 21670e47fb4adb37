// Addresses of the verbs fabric. Tests that need a device run in the lab.
#include "fabric/verbs/address.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace erda::fabric::verbs {
namespace {

TEST(VerbsAddress, HostAndPortAreParsed) {
  for (const std::string host : {"10.9.0.1", "server", "server.example.org"}) {
    const auto address = ParseAddress("verbs://" + host + ":7700");
    ASSERT_TRUE(address.ok()) << address.status().ToString();
    EXPECT_EQ(address->host, host);
    EXPECT_EQ(address->port, 7700);
    EXPECT_TRUE(address->device.empty());
    EXPECT_FALSE(address->gid.has_value());
  }
  const auto address = ParseAddress("verbs://[fd09::1]:0");
  ASSERT_TRUE(address.ok()) << address.status().ToString();
  EXPECT_EQ(address->host, "fd09::1");
  EXPECT_EQ(address->port, 0);
}

TEST(VerbsAddress, OptionsAreParsed) {
  const auto address = ParseAddress("verbs://0.0.0.0:65535?device=mlx5_0&gid=3");
  ASSERT_TRUE(address.ok()) << address.status().ToString();
  EXPECT_EQ(address->device, "mlx5_0");
  EXPECT_EQ(address->gid, 3U);
  EXPECT_EQ(ParseAddress("verbs://h:1?device=rxe0")->device, "rxe0");
}

TEST(VerbsAddress, WrongAddressIsRefusedWithAReason) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "verbs://host:port"},
      {"verbs:", "verbs://host:port"},
      {"verbs:/h:1", "verbs://host:port"},
      {"VERBS://h:1", "verbs://host:port"},
      {"shm:/tmp/x", "verbs://host:port"},
      {"verbs://", "port is missing"},
      {"verbs://host", "port is missing"},
      {"verbs://:1", "host is missing"},
      {"verbs://[]:1", "host is missing"},
      {"verbs://fd09::1:7700", "brackets"},
      {"verbs://host:", "0 to 65535"},
      {"verbs://host:65536", "0 to 65535"},
      {"verbs://host:-1", "0 to 65535"},
      {"verbs://host:1x", "0 to 65535"},
      {"verbs://host:1?", ""},
      {"verbs://host:1?device", "options are"},
      {"verbs://host:1?device=", "options are"},
      {"verbs://host:1?gid=x&device=a", "options are"},
      {"verbs://host:1?color=red", "options are"},
      {"verbs://host:1?gid=1", "gid needs a device"},
  };
  for (const auto& [text, why] : wrong) {
    const auto address = ParseAddress(text);
    if (why.empty()) {
      EXPECT_TRUE(address.ok()) << text;
      continue;
    }
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.status().code(), Code::kInvalidArgument) << text;
    EXPECT_NE(address.status().message().find(why), std::string_view::npos) << address.status().ToString();
    EXPECT_NE(address.status().message().find(text), std::string_view::npos) << address.status().ToString();
  }
}

TEST(VerbsAddress, FormattedAddressParsesToItself) {
  // (The last address is link-local, so it names its interface.)
  for (const std::string text : {"verbs://10.9.0.1:7700", "verbs://[fd09::1]:1", "verbs://[fe80::1%1]:7700"}) {
    const auto address = ParseAddress(text);
    const auto socket = Lookup(*address);
    ASSERT_TRUE(socket.ok()) << socket.status().ToString();
    EXPECT_EQ(FormatAddress(*socket, address->port), text);
    EXPECT_FALSE(socket->any());
  }
  EXPECT_TRUE(Lookup(*ParseAddress("verbs://0.0.0.0:1"))->any());
  EXPECT_TRUE(Lookup(*ParseAddress("verbs://[::]:1"))->any());
  EXPECT_EQ(Lookup(*ParseAddress("verbs://no.such.host.invalid:1")).status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace erda::fabric::verbs

// Each option that is a number, at its bounds, next to them, and at the ends of its type, in C++ and C.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/option_bounds.h"
#include "base/temporary_folder.h"
#include "erda/client.h"
#include "erda/erda.h"
#include "erda/server.h"

namespace erda {
namespace {

bool IsRefusedFor(const Status& status, const OptionBounds& bounds, const std::string& value) {
  const std::string text(status.message());
  return status.code() == Code::kInvalidArgument && text.starts_with(std::string(bounds.name) + " must be ") &&
         text.find(std::to_string(bounds.least) + " to " + std::to_string(bounds.most)) != std::string::npos &&
         text.ends_with("not " + value);
}

// with: returns the status of a call that has this value of the option.
template <class Number>
void CheckOption(const OptionBounds& bounds, const std::function<Status(Number)>& with, bool is_enum_in_c = false) {
  std::vector<Number> values = {std::numeric_limits<Number>::min(), std::numeric_limits<Number>::max()};
  for (const int64_t value : {bounds.least - 1, bounds.least, bounds.most, bounds.most + 1}) {
    if (std::in_range<Number>(value)) values.push_back(static_cast<Number>(value));
  }
  for (const Number value : values) {
    const bool inside = std::cmp_greater_equal(value, bounds.least) && std::cmp_less_equal(value, bounds.most);
    const Status status = with(value);
    // A number that does not fit into an enumeration of one byte becomes the largest one.
    const bool is_no_byte = is_enum_in_c && !std::in_range<uint8_t>(value);
    const std::string told = is_no_byte ? "255" : std::to_string(value);
    const bool refused = !inside && !(bounds.zero_too && value == 0);
    EXPECT_EQ(IsRefusedFor(status, bounds, told), refused) << bounds.name << " " << told << ": " << status.ToString();
  }
}

class OptionBoundsOfAClient : public testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.pool = "dram:";
    options.pool_size = uint64_t{64} << 20;
    options.listen = {address_};
    server_ = *Server::Open(options);
    ASSERT_TRUE(server_->Start().ok());
  }

  const TemporaryFolder folder_;
  const std::string address_ = "shm:" + (folder_ / "socket").string();
  std::unique_ptr<Server> server_;
};

TEST_F(OptionBoundsOfAClient, OnlyValuesWithinTheBoundsAreAcceptedInCpp) {
  const auto with = [&]<class Value>(const OptionBounds& bounds, Value ClientOptions::*member) {
    using Number = std::conditional_t<std::is_enum_v<Value>, uint8_t,
                                      std::conditional_t<std::is_arithmetic_v<Value>, Value, int64_t>>;
    CheckOption<Number>(bounds, [&](Number number) -> Status {
      if (std::string(bounds.name) == "cache_entries" && number == bounds.most) return {};  // It would take 16 GiB.
      ClientOptions options;
      options.*member = static_cast<Value>(number);
      const auto client = Client::Connect(address_, options);
      // A value within the bounds works. Its deadlines are in the future.
      return client.ok() ? (*client)->Put("key", "value") : client.status();
    });
  };
  with(kClientBounds.queue_depth, &ClientOptions::queue_depth);
  with(kClientBounds.cache_entries, &ClientOptions::cache_entries);
  with(kClientBounds.timeout, &ClientOptions::timeout);
  with(kClientBounds.ack, &ClientOptions::ack);
  with(kClientBounds.put_path, &ClientOptions::put_path);
  with(kClientBounds.polling, &ClientOptions::polling);
}

TEST_F(OptionBoundsOfAClient, OnlyValuesWithinTheBoundsAreAcceptedInC) {
  const auto with = [&]<class Value>(const OptionBounds& bounds, Value erda_client_options::*member) {
    CheckOption<Value>(
        bounds,
        [&](Value value) -> Status {
          if (std::string(bounds.name) == "cache_entries" && value == bounds.most) return {};
          erda_client_options options;
          erda_client_options_init(&options, sizeof(options));
          options.*member = value;
          erda_client* client = nullptr;
          const erda_code code = erda_client_connect(address_.c_str(), &options, &client);
          erda_client_close(client);
          return code == ERDA_OK ? Status() : Status(static_cast<Code>(code), erda_client_error());
        },
        std::is_same_v<Value, int>);
  };
  with(kClientBounds.queue_depth, &erda_client_options::queue_depth);
  with(kClientBounds.cache_entries, &erda_client_options::cache_entries);
  with(kClientBounds.timeout, &erda_client_options::timeout_ms);
  with(kClientBounds.ack, &erda_client_options::ack);
  with(kClientBounds.put_path, &erda_client_options::put_path);
  with(kClientBounds.polling, &erda_client_options::polling);
}

// An earlier client took the first timeout for 5 ms, and the second one failed at once.
TEST_F(OptionBoundsOfAClient, ATimeoutThatNanosecondsCannotHoldIsRefused) {
  for (const int64_t ms : {int64_t{18446744073714}, std::numeric_limits<int64_t>::max()}) {
    ClientOptions options;
    options.timeout = std::chrono::milliseconds(ms);
    EXPECT_TRUE(IsRefusedFor(Client::Connect(address_, options).status(), kClientBounds.timeout, std::to_string(ms)));
  }
}

TEST_F(OptionBoundsOfAClient, OnlyATimeToLiveWithinTheBoundsIsAccepted) {
  const auto client = *Client::Connect(address_);
  CheckOption<int64_t>(kTtlBounds, [&](int64_t ms) {
    PutOptions options;
    options.ttl = std::chrono::milliseconds(ms);
    return client->Put("key", "value", options).status();
  });
  erda_client* c = nullptr;
  ASSERT_EQ(erda_client_connect(address_.c_str(), nullptr, &c), ERDA_OK);
  CheckOption<int64_t>(kTtlBounds, [&](int64_t ms) -> Status {
    erda_put_options options;
    erda_client_put_options_init(&options, sizeof(options));
    options.ttl_ms = ms;
    const erda_code code = erda_client_put(c, "key", 3, "value", 5, &options, nullptr);
    // In C, 0 means that the option is not set.
    if (ms == 0) {
      EXPECT_EQ(code, ERDA_OK);
      return {Code::kInvalidArgument, "ttl (in ms) must be 1 to 281474976710656, not 0"};
    }
    return code == ERDA_OK ? Status() : Status(static_cast<Code>(code), erda_client_error());
  });
  erda_client_close(c);
}

// A value out of bounds is refused for its bounds. A value within the bounds may fail for another reason, or succeed: a
// pool of 64 MiB does not fit all values.
TEST(OptionBoundsOfAServer, OnlyValuesOutOfBoundsAreRefusedForTheirBounds) {
  const TemporaryFolder folder;
  const std::string address = "shm:" + (folder / "socket").string();
  const char* listen = address.c_str();
  const auto with = [&]<class Value, class InC>(const OptionBounds& bounds, Value ServerOptions::*member,
                                                InC erda_server_options::*in_c) {
    using Number = std::conditional_t<std::is_enum_v<Value>, uint8_t,
                                      std::conditional_t<std::is_arithmetic_v<Value>, Value, int64_t>>;
    // The pool is in a folder that does not exist, so the call takes no memory for it.
    CheckOption<Number>(bounds, [&](Number number) {
      ServerOptions options;
      options.pool = (folder / "none/pool").string();
      options.pool_size = uint64_t{64} << 20;
      options.listen = {address};
      options.*member = static_cast<Value>(number);
      return Server::Open(options).status();
    });
    CheckOption<InC>(
        bounds,
        [&](InC value) -> Status {
          erda_server_options options;
          erda_server_options_init(&options, sizeof(options));
          const std::string pool = (folder / "none/pool").string();
          options.pool = pool.c_str();
          options.pool_size = uint64_t{64} << 20;
          options.listen = &listen;
          options.listen_count = 1;
          options.*in_c = value;
          erda_server* server = nullptr;
          const erda_code code = erda_server_open(&options, &server);
          erda_server_close(server);
          return code == ERDA_OK ? Status() : Status(static_cast<Code>(code), erda_server_error());
        },
        std::is_same_v<InC, int>);
  };
#define WITH(name) with(kServerBounds.name, &ServerOptions::name, &erda_server_options::name)
  WITH(pool_size);
  WITH(shards);
  WITH(region_size);
  WITH(segment_size);
  WITH(index_entries);
  WITH(grow_to);
  WITH(max_clients);
  WITH(slots_per_client);
  WITH(slot_bytes);
  WITH(reservations_per_client);
  WITH(clients_per_token);
  WITH(requests_per_second);
  WITH(connects_per_second);
  WITH(shm_access);
  WITH(pool_writes);
  WITH(staging_bytes);
  WITH(flush);
  WITH(journal_size);
  WITH(scrub_rate);
  WITH(polling);
#undef WITH
  with(kServerBounds.journal_interval, &ServerOptions::journal_interval, &erda_server_options::journal_interval_ms);
  with(kServerBounds.sync, &ServerOptions::sync, &erda_server_options::sync_ms);
  with(kServerBounds.spin, &ServerOptions::spin, &erda_server_options::spin_us);
  with(kServerBounds.nvm_write_latency, &ServerOptions::nvm_write_latency, &erda_server_options::nvm_write_latency_ns);
}

}  // namespace
}  // namespace erda

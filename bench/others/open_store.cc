#include "bench/others/open_store.h"

#include <optional>
#include <string>
#include <utility>

#ifdef ERDA_BENCH_REDIS
#include "bench/others/redis_store.h"
#endif
#ifdef ERDA_BENCH_MEMCACHED
#include "bench/others/memcached_store.h"
#endif

namespace erda::bench {
namespace {

// Returns the rest of the address after the scheme. Returns nothing for another scheme.
std::optional<std::string> PathOf(std::string_view address, std::string_view scheme) {
  if (!address.starts_with(scheme)) return std::nullopt;
  return std::string(address.substr(scheme.size()));
}

[[maybe_unused]] Status NotBuilt(std::string_view scheme, std::string_view library, std::string_view package) {
  return {Code::kInvalidArgument, std::string(scheme) + " addresses need " + std::string(library) +
                                      ", which this program was built without (Debian package " + std::string(package) +
                                      "; CMake option ERDA_BENCH_OTHERS)"};
}

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(std::string_view address, const ClientOptions& options) {
  if (const auto path = PathOf(address, "redis:")) {
#ifdef ERDA_BENCH_REDIS
    return RedisStore::Connect(*path, options);
#else
    return NotBuilt("redis:", "hiredis", "libhiredis-dev");
#endif
  }
  if (const auto path = PathOf(address, "memcached:")) {
#ifdef ERDA_BENCH_MEMCACHED
    return MemcachedStore::Connect(*path, options);
#else
    return NotBuilt("memcached:", "libmemcached", "libmemcached-dev");
#endif
  }
  auto client = Client::Connect(address, options);
  if (!client.ok()) return client.status();
  return std::unique_ptr<Store>(std::make_unique<ErdaStore>(*std::move(client)));
}

}  // namespace erda::bench

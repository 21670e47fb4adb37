#include "bench/others/open_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#ifdef ERDA_BENCH_REDIS
#include "bench/others/redis_store.h"
#endif
#ifdef ERDA_BENCH_MEMCACHED
#include "bench/others/memcached_store.h"
#endif
#ifdef ERDA_BENCH_LMDB
#include "bench/others/lmdb_store.h"
#endif
#ifdef ERDA_BENCH_TKRZW
#include "bench/others/tkrzw_store.h"
#endif
#ifdef ERDA_BENCH_ROCKSDB
#include "bench/others/rocksdb_store.h"
#endif

namespace erda::bench {
namespace {

// `rest` is the part of the address after the scheme.
using Opener = Result<std::unique_ptr<Store>> (*)(const std::string& rest, const ClientOptions& options);

struct Other {
  std::string_view scheme;
  std::string_view library;
  std::string_view package;
  Opener open;  // Null if the program was built without the library.
};

constexpr std::array<Other, 5> kOthers = {{
    {"redis", "hiredis", "libhiredis-dev",
#ifdef ERDA_BENCH_REDIS
     &RedisStore::Connect
#else
     nullptr
#endif
    },
    {"memcached", "libmemcached", "libmemcached-dev",
#ifdef ERDA_BENCH_MEMCACHED
     &MemcachedStore::Connect
#else
     nullptr
#endif
    },
    {"lmdb", "LMDB", "liblmdb-dev",
#ifdef ERDA_BENCH_LMDB
     &LmdbStore::Open
#else
     nullptr
#endif
    },
    {"tkrzw", "Tkrzw", "libtkrzw-dev",
#ifdef ERDA_BENCH_TKRZW
     &TkrzwStore::Open
#else
     nullptr
#endif
    },
    {"rocksdb", "RocksDB", "librocksdb-dev",
#ifdef ERDA_BENCH_ROCKSDB
     &RocksdbStore::Open
#else
     nullptr
#endif
    },
}};

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(std::string_view address, const ClientOptions& options) {
  const size_t colon = std::min(address.find(':'), address.size());
  for (const Other& other : kOthers) {
    if (address.substr(0, colon) != other.scheme || colon == address.size()) continue;
    if (other.open != nullptr) return other.open(std::string(address.substr(colon + 1)), options);
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: addresses need {}, which this program was built without (Debian package {}; CMake "
                              "option ERDA_BENCH_OTHERS)",
                              other.scheme, other.library, other.package));
  }
  auto client = Client::Connect(address, options);
  if (!client.ok()) return client.status();
  return std::unique_ptr<Store>(std::make_unique<ErdaStore>(*std::move(client)));
}

}  // namespace erda::bench

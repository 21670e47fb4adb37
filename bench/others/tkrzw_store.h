// Tkrzw's HashDBM as a store of the benchmark: a hash table in a file that one process maps.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bench/others/embedded_store.h"
#include "erda/client.h"
#include "erda/status.h"

namespace tkrzw {  // NOLINT(readability-identifier-naming): the library's name
class HashDBM;
}

namespace erda::bench {

// A put stores into the mapping, in place, and nothing syncs it. After the death of the process the next opening
// restores the records that it finds whole. After a power cut nothing is promised. All threads share the table. Another
// process cannot open it meanwhile. The address has no options.
class TkrzwStore : public EmbeddedStore {
 public:
  // `address` is the part after "tkrzw:".
  [[nodiscard]] static Result<std::unique_ptr<Store>> Open(const std::string& address, const ClientOptions& options);
  ~TkrzwStore() override;

 private:
  TkrzwStore(std::shared_ptr<tkrzw::HashDBM> table, const ClientOptions& options);

  Result<size_t> Read(std::string_view key, std::span<std::byte> out) override;
  Status Write(std::span<const Record> records) override;

  const std::shared_ptr<tkrzw::HashDBM> table_;
};

}  // namespace erda::bench

#include "bench/bytes/measure.h"

#include <memory>
#include <string>
#include <utility>

#include "bench/floors/temporary_folder.h"
#include "bench/schemes/client/open_store.h"
#include "bench/schemes/scheme.h"
#include "bench/schemes/server/server.h"
#include "bench/ycsb/workload.h"
#include "erda/server.h"

namespace erda::bytes {

namespace {

using bench::NvmStore;

constexpr uint64_t kPoolBytesMin = 64 << 20;
// Returns the size of a pool that is too large to be cleaned with these values: table 1 does not count the cleaner's
// copies.
uint64_t PoolBytes(const Settings& settings, uint64_t value_size) {
  return kPoolBytesMin + 8 * settings.keys * (value_size + 128);
}

Result<uint64_t> Total(NvmStore& store) {
  const auto server = store.ServerNvmBytes();
  if (!server.ok()) return server.status();
  return *server + store.ClientNvmBytes();
}

Status Do(NvmStore& store, Kind kind, uint64_t record, const std::string& value) {
  const bench::Key key = bench::KeyOf(record);
  return kind == Kind::kDelete ? store.Delete(bench::AsView(key)) : store.Put(bench::AsView(key), value);
}

Status CountInto(NvmStore& store, const Settings& settings, Row& row) {
  const bench::Values values(row.value_size);
  std::string value(row.value_size, '\0');
  for (const Kind kind : kKinds) {
    const auto before = Total(store);
    if (!before.ok()) return before.status();
    for (uint64_t record = 0; record < settings.keys; ++record) {
      values.Fill(value, record, static_cast<uint64_t>(kind));
      if (auto status = Do(store, kind, record, value); !status.ok()) return status;
    }
    const auto after = Total(store);
    if (!after.ok()) return after.status();
    const auto i = static_cast<size_t>(kind);
    row.counted[i] = static_cast<double>(*after - *before) / static_cast<double>(settings.keys);
    row.paper[i] = PaperBytes(row.scheme == bench::kErda, kind, sizeof(bench::Key), row.value_size);
  }
  return {};
}

Status MeasureErda(const Settings& settings, const std::string& address, Row& row) {
  ServerOptions options;
  options.pool = "dram:";
  options.pool_size = PoolBytes(settings, row.value_size);
  options.listen = {address};
  auto server = Server::Open(options);
  if (!server.ok()) return server.status();
  if (auto status = (*server)->Start(); !status.ok()) return status;
  ClientOptions client;
  client.put_path = row.path == "reserve" ? PutPath::kReserve : PutPath::kInline;
  auto store = bench::OpenStore(row.scheme, address, client);
  if (!store.ok()) return store.status();
  return CountInto(**store, settings, row);
}

Status MeasureScheme(const Settings& settings, const std::string& address, Row& row) {
  schemes::ServerSettings options;
  options.scheme = schemes::FindScheme(row.scheme).value();
  options.pool.pool = {"dram:", PoolBytes(settings, row.value_size), {}};
  options.listen = address;
  auto server = schemes::Server::Start(options);
  if (!server.ok()) return server.status();
  auto store = bench::OpenStore(row.scheme, address, {});
  if (!store.ok()) return store.status();
  return CountInto(**store, settings, row);
}

}  // namespace

Result<Report> Measure(const Settings& settings) {
  const floors::TemporaryFolder folder;
  if (folder.path().empty()) return Status(Code::kInternal, "cannot make a folder for a socket");
  const std::string address = "shm:" + folder.path() + "/socket";
  Report report;
  report.key_size = sizeof(bench::Key);
  for (const uint64_t value_size : settings.value_sizes) {
    for (const auto& [scheme, path] : {std::pair("erda", "inline"), {"erda", "reserve"}, {"redo", ""}, {"raw", ""}}) {
      Row row;
      row.scheme = scheme;
      row.path = path;
      row.value_size = value_size;
      const Status status =
          row.scheme == bench::kErda ? MeasureErda(settings, address, row) : MeasureScheme(settings, address, row);
      if (!status.ok()) return status;
      report.rows.push_back(std::move(row));
    }
  }
  return report;
}

}  // namespace erda::bytes

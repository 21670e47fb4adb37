#include "bench/others/tkrzw_store.h"

#include <fmt/format.h>
#include <tkrzw_dbm_hash.h>

#include <cstring>
#include <utility>

#include "bench/others/file_address.h"

namespace erda::bench {
namespace {

Status Describe(const tkrzw::Status& status) {
  Code code = Code::kInternal;
  switch (status.GetCode()) {
    case tkrzw::Status::SUCCESS:
      return {};
    case tkrzw::Status::NOT_FOUND_ERROR:
      return Status(Code::kNotFound);
    case tkrzw::Status::INVALID_ARGUMENT_ERROR:
      code = Code::kInvalidArgument;
      break;
    case tkrzw::Status::PERMISSION_ERROR:
      code = Code::kPermissionDenied;
      break;
    case tkrzw::Status::INFEASIBLE_ERROR:
      code = Code::kResourceExhausted;
      break;
    case tkrzw::Status::BROKEN_DATA_ERROR:
      code = Code::kCorruption;
      break;
    default:
      break;
  }
  return {code, fmt::format("Tkrzw: {}", tkrzw::ToString(status))};
}

// Copies the value while the table keeps it from changing.
class ValueCopier final : public tkrzw::DBM::RecordProcessor {
 public:
  explicit ValueCopier(std::span<std::byte> out) : out_(out) {}
  std::string_view ProcessFull(std::string_view /*key*/, std::string_view value) override {
    size_ = value.size();
    found_ = true;
    if (!value.empty() && value.size() <= out_.size()) std::memcpy(out_.data(), value.data(), value.size());
    return NOOP;
  }
  [[nodiscard]] Result<size_t> size() const {
    if (!found_) return Status(Code::kNotFound);
    return size_;
  }

 private:
  const std::span<std::byte> out_;
  size_t size_ = 0;
  bool found_ = false;
};

Result<std::shared_ptr<tkrzw::HashDBM>> OpenTable(const std::string& address) {
  const auto parsed = FileAddress::Parse("tkrzw", address, {});
  if (!parsed.ok()) return parsed.status();
  auto table = std::make_shared<tkrzw::HashDBM>();
  // Without OPEN_NO_WAIT it would wait for another process to end.
  const tkrzw::Status opened = table->Open(parsed->path(), /*writable=*/true, tkrzw::File::OPEN_NO_WAIT);
  const Status status = Describe(opened);
  if (status.ok()) return table;
  const Code code = status.code() == Code::kNotFound ? Code::kInvalidArgument : status.code();
  return Status(code, fmt::format("Tkrzw: cannot open {}, which one process at a time may use: {}", parsed->path(),
                                  tkrzw::ToString(opened)));
}

}  // namespace

Result<std::unique_ptr<Store>> TkrzwStore::Open(const std::string& address, const ClientOptions& options) {
  static SharedObjects<tkrzw::HashDBM> tables;
  auto table = tables.Find(address, [&address] { return OpenTable(address); });
  if (!table.ok()) return table.status();
  return std::unique_ptr<Store>(new TkrzwStore(*std::move(table), options));
}

TkrzwStore::TkrzwStore(std::shared_ptr<tkrzw::HashDBM> table, const ClientOptions& options)
    : EmbeddedStore(options), table_(std::move(table)) {}

TkrzwStore::~TkrzwStore() = default;

Result<size_t> TkrzwStore::Read(std::string_view key, std::span<std::byte> out) {
  ValueCopier copier(out);
  if (const Status status = Describe(table_->Process(key, &copier, /*writable=*/false)); !status.ok()) return status;
  return copier.size();
}

Status TkrzwStore::Write(std::span<const Record> records) {
  for (const Record& record : records) {
    if (Status status = Describe(table_->Set(record.key, record.value)); !status.ok()) return status;
  }
  return {};
}

}  // namespace erda::bench

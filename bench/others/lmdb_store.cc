#include "bench/others/lmdb_store.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "bench/others/file_address.h"

namespace erda::bench {
namespace {

constexpr std::array<FileAddress::Option, 3> kOptions = {{{"nosync", false}, {"writemap", false}, {"size", true}}};
constexpr uint64_t kMapBytes = uint64_t{4} << 30;
constexpr unsigned kReaders = 4096;  // At most, over all processes.
constexpr mdb_mode_t kMode = 0644;

MDB_val ToVal(std::string_view bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }

}  // namespace

// The file, opened once for all threads of this process.
class LmdbStore::Environment {
 public:
  static Result<std::shared_ptr<Environment>> Open(const std::string& address);

  explicit Environment(FileAddress address)
      : address_(std::move(address)), map_bytes_(address_.size("size", kMapBytes)) {}
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { mdb_env_close(env_); }

  [[nodiscard]] Status Describe(int error) const;
  [[nodiscard]] MDB_dbi records() const { return records_; }
  // Returns LMDB's error code.
  [[nodiscard]] int Begin(unsigned flags, Transaction& transaction) const;

 private:
  [[nodiscard]] Status Open();

  const FileAddress address_;
  const uint64_t map_bytes_;
  MDB_env* env_ = nullptr;
  MDB_dbi records_ = 0;
};

Result<std::shared_ptr<LmdbStore::Environment>> LmdbStore::Environment::Open(const std::string& address) {
  auto parsed = FileAddress::Parse("lmdb", address, kOptions);
  if (!parsed.ok()) return parsed.status();
  auto environment = std::make_shared<Environment>(*std::move(parsed));
  if (Status status = environment->Open(); !status.ok()) return status;
  return environment;
}

Status LmdbStore::Environment::Open() {
  // Without MDB_NOTLS a thread could have one reading transaction only.
  unsigned flags = MDB_NOSUBDIR | MDB_NOTLS;
  if (address_.has("nosync")) flags |= MDB_NOSYNC;
  if (address_.has("writemap")) flags |= MDB_WRITEMAP;
  int error = mdb_env_create(&env_);
  if (error == 0) error = mdb_env_set_mapsize(env_, map_bytes_);
  if (error == 0) error = mdb_env_set_maxreaders(env_, kReaders);
  if (error == 0) error = mdb_env_open(env_, address_.path().c_str(), flags, kMode);
  // The snapshots of processes that were killed would keep their pages from being used again.
  if (error == 0) error = mdb_reader_check(env_, nullptr);
  Transaction transaction(nullptr, &mdb_txn_abort);
  if (error == 0) error = Begin(MDB_RDONLY, transaction);
  if (error == 0) error = mdb_dbi_open(transaction.get(), nullptr, 0, &records_);
  if (error == 0) error = mdb_txn_commit(transaction.release());
  return Describe(error);
}

int LmdbStore::Environment::Begin(unsigned flags, Transaction& transaction) const {
  MDB_txn* begun = nullptr;
  const int error = mdb_txn_begin(env_, nullptr, flags, &begun);
  transaction.reset(begun);
  return error;
}

Status LmdbStore::Environment::Describe(int error) const {
  const auto with = [this, error](Code code) {
    return Status(code, fmt::format("LMDB: {}: {}", address_.path(), mdb_strerror(error)));
  };
  switch (error) {
    case MDB_SUCCESS:
      return {};
    case MDB_NOTFOUND:
      return Status(Code::kNotFound);
    case MDB_MAP_FULL:
    case MDB_MAP_RESIZED:
      return {Code::kResourceExhausted,
              fmt::format("LMDB: the map of {} has {} bytes and is {}; give a larger one in the address: "
                          "lmdb:{},size={}M",
                          address_.path(), map_bytes_, error == MDB_MAP_FULL ? "full" : "smaller than the file",
                          address_.path(), (map_bytes_ >> 20) * 2 + 1)};
    case MDB_READERS_FULL:
    case MDB_TXN_FULL:
    case ENOSPC:
    case ENOMEM:
      return with(Code::kResourceExhausted);
    case MDB_BAD_VALSIZE:
    case EINVAL:
    case ENOENT:
    case EISDIR:
      return with(Code::kInvalidArgument);
    case EACCES:
    case EPERM:
    case EROFS:
      return with(Code::kPermissionDenied);
    case MDB_CORRUPTED:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
      return with(Code::kCorruption);
    default:
      return with(Code::kInternal);
  }
}

Result<std::unique_ptr<Store>> LmdbStore::Open(const std::string& address, const ClientOptions& options) {
  static SharedObjects<Environment> environments;
  auto environment = environments.Find(address, [&address] { return Environment::Open(address); });
  if (!environment.ok()) return environment.status();
  Transaction reader(nullptr, &mdb_txn_abort);
  if (const int error = (*environment)->Begin(MDB_RDONLY, reader); error != 0) return (*environment)->Describe(error);
  mdb_txn_reset(reader.get());
  return std::unique_ptr<Store>(new LmdbStore(*std::move(environment), std::move(reader), options));
}

LmdbStore::LmdbStore(std::shared_ptr<Environment> environment, Transaction reader, const ClientOptions& options)
    : EmbeddedStore(options), environment_(std::move(environment)), reader_(std::move(reader)) {}

LmdbStore::~LmdbStore() = default;

Result<size_t> LmdbStore::Read(std::string_view key, std::span<std::byte> out) {
  if (const int error = mdb_txn_renew(reader_.get()); error != 0) return environment_->Describe(error);
  MDB_val name = ToVal(key);
  MDB_val value;
  const int error = mdb_get(reader_.get(), environment_->records(), &name, &value);
  // The value lies in the map, and stays there only until the reset.
  if (error == 0 && value.mv_size > 0 && value.mv_size <= out.size()) {
    std::memcpy(out.data(), value.mv_data, value.mv_size);
  }
  mdb_txn_reset(reader_.get());
  if (error != 0) return environment_->Describe(error);
  return value.mv_size;
}

// A failure aborts the transaction, and with it all puts.
Status LmdbStore::Write(std::span<const Record> records) {
  Transaction transaction(nullptr, &mdb_txn_abort);
  int error = environment_->Begin(0, transaction);
  for (size_t i = 0; error == 0 && i < records.size(); ++i) {
    MDB_val name = ToVal(records[i].key);
    MDB_val value = ToVal(records[i].value);
    error = mdb_put(transaction.get(), environment_->records(), &name, &value, 0);
  }
  if (error == 0) error = mdb_txn_commit(transaction.release());
  return environment_->Describe(error);
}

}  // namespace erda::bench

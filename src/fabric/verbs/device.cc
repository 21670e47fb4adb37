#include "fabric/verbs/device.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bytes.h"

namespace erda::fabric::verbs {

namespace {

// Explains the error of rdma_cm if the kernel has no support for RDMA.
Status NoRdma(int error) {
  std::string message = std::string("RDMA is not available on this machine: ") + std::strerror(error);
  if (::access("/dev/infiniband/rdma_cm", F_OK) != 0) {
    message += "; there is no /dev/infiniband/rdma_cm: is the kernel's module rdma_ucm loaded?";
  }
  return {Code::kUnavailable, message};
}

// Returns the IP address that a RoCE entry of a device's table stands for. IPv4 addresses are mapped.
std::optional<SocketAddress> AddressOfGid(const ibv_gid& gid) {
  SocketAddress address;
  constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(kMapped.begin(), kMapped.end(), gid.raw)) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
    v4->sin_family = AF_INET;
    std::memcpy(&v4->sin_addr, gid.raw + kMapped.size(), sizeof(v4->sin_addr));
    return address;
  }
  // A link-local address, valid on one wire only.
  if (gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80) return std::nullopt;
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  v6->sin6_family = AF_INET6;
  std::memcpy(&v6->sin6_addr, gid.raw, sizeof(v6->sin6_addr));
  return address;
}

std::vector<ibv_gid_entry> GidsOf(ibv_context* context) {
  std::vector<ibv_gid_entry> entries(256);
  const ssize_t n = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  entries.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return entries;
}

}  // namespace

Result<std::shared_ptr<Device>> Device::Open(const Address& address, Role role) {
  std::shared_ptr<Device> device(new Device());
  // Without an event channel, the calls wait for their outcome.
  if (::rdma_create_id(nullptr, &device->id_, nullptr, RDMA_PS_TCP) != 0) return NoRdma(errno);
  if (auto status = device->Find(address, role); !status.ok()) return status;
  if (auto status = device->Ask(); !status.ok()) return status;
  if (auto status = device->MakeDomain(); !status.ok()) return status;
  return device;
}

Result<std::shared_ptr<Device>> Device::WithOtherDomain(std::shared_ptr<Device> device) {
  std::shared_ptr<Device> other(new Device());
  other->id_ = device->id_;
  other->capabilities_ = device->capabilities_;
  other->limits_ = device->limits_;
  other->opened_ = std::move(device);
  if (auto status = other->MakeDomain(); !status.ok()) return status;
  return other;
}

Status Device::MakeDomain() {
  domain_ = ibv_alloc_pd(context());
  if (domain_ == nullptr)
    return ErrnoStatus("device " + capabilities_.device + ": cannot allocate a protection domain");
  if (capabilities_.memory_windows) {  // as the kernel says; the device's library may have none all the same
    ibv_mw* const window = ibv_alloc_mw(domain_, IBV_MW_TYPE_2);
    capabilities_.memory_windows = window != nullptr && ibv_dealloc_mw(window) == 0;
  }
  return {};
}

Device::~Device() {
  if (domain_ != nullptr) ibv_dealloc_pd(domain_);
  if (id_ != nullptr && !opened_) ::rdma_destroy_id(id_);
}

Status Device::Find(const Address& address, Role role) {
  auto found = verbs::Lookup(address);
  if (!found.ok()) return found.status();
  host_ = address.host;
  found_ = *found;
  SocketAddress socket = found_;
  socket.set_port(0);
  const std::string host = "host " + address.host;
  if (!address.device.empty()) return BindTo(address, socket.storage.ss_family);
  if (role == Role::kListen) {
    if (socket.any()) return FindOnlyOne(socket.storage.ss_family);
    if (::rdma_bind_addr(id_, socket.get()) != 0) {
      return {Code::kUnavailable,
              "no RDMA device of this machine has the address of " + host + ": " + std::strerror(errno)};
    }
  } else if (::rdma_resolve_addr(id_, nullptr, socket.get(), kResolveMs) != 0) {
    return {Code::kUnavailable, "no RDMA device of this machine reaches " + host + ": " + std::strerror(errno)};
  }
  if (id_->verbs != nullptr) return {};
  return {Code::kUnavailable, "no RDMA device leads to " + host};
}

Result<SocketAddress> Device::Lookup(const Address& address) const {
  if (address.host != host_) return verbs::Lookup(address);
  SocketAddress socket = found_;
  socket.set_port(address.port);
  return socket;
}

Status Device::BindTo(const Address& address, int family) {
  if (auto status = FindByName(address, family); !status.ok()) return status;
  if (::rdma_bind_addr(id_, source_->get()) != 0) return ErrnoStatus("device " + address.device);
  return id_->verbs != nullptr ? Status()
                               : Status(Code::kUnavailable, "RDMA device " + address.device + " is not ready for use");
}

// Chooses the entry from which to speak: the requested one, or the first that is an address of the peer's family.
Status Device::FindByName(const Address& address, int family) {
  int count = 0;
  ibv_context** contexts = ::rdma_get_devices(&count);
  if (contexts == nullptr) return NoRdma(errno);
  Status status(Code::kUnavailable, "this machine has no RDMA device " + address.device);
  for (int i = 0; i < count; ++i) {
    if (address.device != ibv_get_device_name(contexts[i]->device)) continue;
    status = Status(Code::kUnavailable, "device " + address.device + " has no such address");
    for (const ibv_gid_entry& entry : GidsOf(contexts[i])) {
      if (address.gid && entry.gid_index != *address.gid) continue;
      source_ = AddressOfGid(entry.gid);
      if (source_ && (address.gid || source_->storage.ss_family == family)) break;
      source_.reset();
    }
    if (source_) status = Status();
  }
  ::rdma_free_devices(contexts);
  return status;
}

// For a listener at every address: takes the only device.
Status Device::FindOnlyOne(int family) {
  int count = 0;
  ibv_context** contexts = ::rdma_get_devices(&count);
  if (contexts == nullptr) return NoRdma(errno);
  Address only;
  if (count == 1) only.device = ibv_get_device_name(contexts[0]->device);
  ::rdma_free_devices(contexts);
  if (count == 1) return BindTo(only, family);
  return {Code::kInvalidArgument, "this machine has " + std::to_string(count) +
                                      " RDMA devices: name an address to listen at, or one of them (?device=NAME)"};
}

std::optional<SocketAddress> Device::OwnAddress(int family) const {
  for (const ibv_gid_entry& entry : GidsOf(context())) {
    auto address = AddressOfGid(entry.gid);
    if (address && address->storage.ss_family == family) return address;
  }
  return std::nullopt;
}

Status Device::Ask() {
  ibv_device_attr_ex attributes{};
  if (const int error = ibv_query_device_ex(context(), nullptr, &attributes); error != 0) {
    return {Code::kUnavailable, std::string("the RDMA device does not answer: ") + std::strerror(error)};
  }
  const ibv_device_attr& plain = attributes.orig_attr;
  capabilities_.device = ibv_get_device_name(context()->device);
  // A reliable connection has them on InfiniBand and RoCE, but not on iWARP.
  capabilities_.immediate_data = context()->device->transport_type != IBV_TRANSPORT_IWARP;
  capabilities_.atomics = plain.atomic_cap != IBV_ATOMIC_NONE;
  capabilities_.memory_windows = (plain.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0;
  const uint32_t paged = attributes.odp_caps.per_transport_caps.rc_odp_caps;
  capabilities_.on_demand_paging = (attributes.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0 &&
                                   (paged & IBV_ODP_SUPPORT_READ) != 0 && (paged & IBV_ODP_SUPPORT_WRITE) != 0;
  // IB_DEVICE_FLUSH_PERSISTENT of the kernel's interface. This version of rdma-core has no name for it.
  constexpr uint64_t kFlushPersistent = uint64_t{1} << 39;
  capabilities_.native_flush = (attributes.device_cap_flags_ex & kFlushPersistent) != 0;
  capabilities_.nic_writes = true;
  limits_.cq_entries = static_cast<uint32_t>(plain.max_cqe);
  limits_.qp_requests = static_cast<uint32_t>(plain.max_qp_wr);
  limits_.srq_requests = static_cast<uint32_t>(plain.max_srq_wr);
  limits_.reads_out = static_cast<uint8_t>(std::clamp(plain.max_qp_init_rd_atom, 0, 64));
  limits_.reads_in = static_cast<uint8_t>(std::clamp(plain.max_qp_rd_atom, 0, 64));
  capabilities_.outstanding_reads = limits_.reads_out;
  // The vendor id of Soft-RoCE; it has no other lasting name. Soft-RoCE checks the owner of a window, and whether it is
  // open. But it checks the bounds of the window's region, and not those of the window.
  constexpr uint32_t kSoftRoce = 0xffffff;
  limits_.windows_have_bounds = plain.vendor_id != kSoftRoce;
  const auto missing = [&](const char* what) {
    return Status(Code::kUnavailable, "device " + capabilities_.device + " has no " + what + ", which Erda needs");
  };
  if (!capabilities_.immediate_data) return missing("write with immediate");
  if (limits_.reads_out == 0 || limits_.reads_in == 0) return missing("RDMA read");
  if (limits_.srq_requests == 0) return missing("shared receive queue");
  return {};
}

Status Device::RegisterError(size_t bytes, int error) {
  std::string message =
      "cannot register " + std::to_string(bytes) + " bytes with the RDMA device: " + std::strerror(error);
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  if ((error == ENOMEM || error == EAGAIN || error == EPERM) && limit.rlim_cur != RLIM_INFINITY) {
    message += "; the limit of locked memory (RLIMIT_MEMLOCK) is " + std::to_string(limit.rlim_cur) +
               " bytes: raise it with `ulimit -l unlimited`, LimitMEMLOCK=infinity in a systemd unit, or memlock in "
               "/etc/security/limits.conf";
    return {Code::kResourceExhausted, message};
  }
  if (error == EFAULT || error == EOPNOTSUPP || error == EINVAL) {
    message +=
        "; the kernel pins no pages of a file on this file system for a device without on-demand paging. Use a "
        "device (/dev/daxX.Y), a file in tmpfs, or dram:";
    return {Code::kInvalidArgument, message};
  }
  return {Code::kResourceExhausted, message};
}

Result<ibv_mr*> Device::Register(std::span<std::byte> bytes, unsigned access) {
  ibv_mr* mr = ibv_reg_mr(domain_, bytes.data(), bytes.size(), static_cast<int>(access));
  if (mr == nullptr && errno != ENOMEM && capabilities_.on_demand_paging) {
    mr = ibv_reg_mr(domain_, bytes.data(), bytes.size(), static_cast<int>(access | IBV_ACCESS_ON_DEMAND));
  }
  if (mr == nullptr) return RegisterError(bytes.size(), errno);
  return mr;
}

}  // namespace erda::fabric::verbs

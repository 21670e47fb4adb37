#include "verbs/fake_rdma.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace erda::fabric::verbs {

namespace {

FakeRdma* the_device = nullptr;

// Makes an object of one of the libraries' structs. Its place counts until Destroy.
template <class T>
T* Make() {
  ++FakeRdma::Instance().objects;
  return new T{};
}

template <class T>
int Destroy(T* object) {
  --FakeRdma::Instance().objects;
  delete object;
  return 0;
}

int FailWith(int error) {
  errno = error;
  return -1;
}

// --- The functions of a context

int QueryDevice(ibv_context* /*context*/, const ibv_query_device_ex_input* /*input*/, ibv_device_attr_ex* out,
                size_t size) {
  const FakeRdma& rdma = FakeRdma::Instance();
  std::memset(out, 0, size);
  out->orig_attr = rdma.attributes;
  if (rdma.pages_on_demand) {
    out->odp_caps.general_caps = IBV_ODP_SUPPORT;
    out->odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE;
  }
  if (rdma.flushes_natively) out->device_cap_flags_ex = uint64_t{1} << 39;
  return 0;
}

int PostSend(ibv_qp* pair, ibv_send_wr* work, ibv_send_wr** bad) {
  FakeRdma& rdma = FakeRdma::Instance();
  size_t count = 0;
  for (; work != nullptr; work = work->next, ++count) {
    if (rdma.post_error != 0 && count == rdma.post_taken) {
      *bad = work;
      return rdma.post_error;
    }
    if (work->opcode == IBV_WR_BIND_MW) rdma.Bind(pair, work->bind_mw.mw);
    rdma.sent.push_back({pair, *work, work->num_sge > 0 ? *work->sg_list : ibv_sge{}});
  }
  rdma.doorbells.push_back(count);
  return 0;
}

void AddReceive(void* queue, const ibv_recv_wr& work) {
  FakeRdma::Instance().receives.push_back({queue, work.wr_id, reinterpret_cast<std::byte*>(work.sg_list->addr)});
}

// Another queue may soon be at the same address.
void ForgetReceives(const void* queue) {
  std::erase_if(FakeRdma::Instance().receives, [&](const auto& receive) { return receive.queue == queue; });
}

int PostReceive(ibv_qp* pair, ibv_recv_wr* work, ibv_recv_wr** /*bad*/) {
  AddReceive(pair, *work);
  return 0;
}

int PostSharedReceive(ibv_srq* queue, ibv_recv_wr* work, ibv_recv_wr** /*bad*/) {
  AddReceive(queue, *work);
  return 0;
}

int PollCompletions(ibv_cq* /*queue*/, int count, ibv_wc* out) {
  auto& completions = FakeRdma::Instance().completions;
  const size_t n = std::min(static_cast<size_t>(count), completions.size());
  std::copy_n(completions.begin(), n, out);
  completions.erase(completions.begin(), completions.begin() + static_cast<ptrdiff_t>(n));
  return static_cast<int>(n);
}

int ArmCompletions(ibv_cq* /*queue*/, int /*solicited_only*/) {
  FakeRdma& rdma = FakeRdma::Instance();
  ++rdma.armed;
  rdma.completions.insert(rdma.completions.end(), rdma.before_arming.begin(), rdma.before_arming.end());
  rdma.before_arming.clear();
  return 0;
}

ibv_mw* AllocateWindow(ibv_pd* domain, ibv_mw_type type) {
  FakeRdma& rdma = FakeRdma::Instance();
  if (rdma.window_error != 0 || !rdma.has_windows) {
    errno = rdma.has_windows ? rdma.window_error : EOPNOTSUPP;
    return nullptr;
  }
  auto* const window = Make<ibv_mw>();
  window->context = domain->context;
  window->pd = domain;
  window->handle = rdma.next_number;
  window->rkey = rdma.next_number++ << 8;
  window->type = type;
  return window;
}

int PostSendToDestroyed(ibv_qp* /*pair*/, ibv_send_wr* /*work*/, ibv_send_wr** /*bad*/) {
  ADD_FAILURE() << "a request for a queue pair that is destroyed";
  return EINVAL;
}

int PostReceiveToDestroyed(ibv_qp* /*pair*/, ibv_recv_wr* /*work*/, ibv_recv_wr** /*bad*/) {
  ADD_FAILURE() << "a receive for a queue pair that is destroyed";
  return EINVAL;
}

int FreeWindow(ibv_mw* window) {
  FakeRdma::Instance().freed_windows.push_back(window->handle);
  FakeRdma::Instance().Forget(window);
  return Destroy(window);
}

}  // namespace

FakeRdma::FakeRdma() {
  the_device = this;
  std::strcpy(device_.name, "fake0");
  device_.transport_type = IBV_TRANSPORT_IB;
  extended_.sz = sizeof(extended_);
  extended_.query_device_ex = QueryDevice;
  extended_.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  extended_.context.device = &device_;
  extended_.context.ops.post_send = PostSend;
  extended_.context.ops.post_recv = PostReceive;
  extended_.context.ops.post_srq_recv = PostSharedReceive;
  extended_.context.ops.poll_cq = PollCompletions;
  extended_.context.ops.req_notify_cq = ArmCompletions;
  extended_.context.ops.alloc_mw = AllocateWindow;
  extended_.context.ops.dealloc_mw = FreeWindow;
  dead_.context.ops.post_send = PostSendToDestroyed;
  dead_.context.ops.post_recv = PostReceiveToDestroyed;
  domain_.context = &extended_.context;
  pair_.context = &extended_.context;
  attributes.max_cqe = 1 << 16;
  attributes.max_qp_wr = 1 << 14;
  attributes.max_srq_wr = 1 << 15;
  attributes.max_qp_rd_atom = 16;
  attributes.max_qp_init_rd_atom = 16;
  attributes.device_cap_flags = IBV_DEVICE_MEM_WINDOW_TYPE_2B;
}

FakeRdma::~FakeRdma() {
  EXPECT_EQ(objects, 0) << "objects of the device were not destroyed";
  the_device = nullptr;
}

FakeRdma& FakeRdma::Instance() {
  if (the_device == nullptr) {
    ADD_FAILURE() << "this test has no device";
    std::abort();
  }
  return *the_device;
}

void FakeRdma::Complete(const Sent& done, ibv_wc_status status) {
  ibv_wc wc{};
  wc.wr_id = done.work.wr_id;
  wc.status = status;
  wc.qp_num = done.pair->qp_num;
  Complete(wc);
}

void FakeRdma::Happen(rdma_cm_id* id, rdma_cm_event_type type, int status, std::vector<std::byte> private_data) {
  auto event = std::make_unique<rdma_cm_event>();
  private_data_.push_back(std::move(private_data));
  event->id = id;
  event->event = type;
  event->status = status;
  event->param.conn.private_data = private_data_.back().data();
  event->param.conn.private_data_len = static_cast<uint8_t>(private_data_.back().size());
  events.push_back(std::move(event));
  if (id->channel == nullptr) return;
  const uint64_t one = 1;
  EXPECT_EQ(::write(id->channel->fd, &one, sizeof(one)), ssize_t{sizeof(one)});
}

void FakeRdma::Forget(ibv_mw* window) {
  std::erase_if(bound_, [&](const auto& one) { return one.second == window; });
}

void FakeRdma::Destroy(ibv_qp* pair) {
  for (const auto& [its_pair, window] : bound_) EXPECT_NE(its_pair, pair) << "the queue pair still has a window";
  std::erase_if(completions, [&](const ibv_wc& wc) { return wc.qp_num == pair->qp_num; });
  completions.insert(completions.end(), at_destruction.begin(), at_destruction.end());
  at_destruction.clear();
  ForgetReceives(pair);
  --objects;
  pair->context = &dead_.context;
  destroyed_.emplace_back(pair);
}

std::vector<FakeRdma::Sent> FakeRdma::TakeSent() { return std::exchange(sent, {}); }

// A function with C linkage is the library's function in any namespace.
extern "C" {

// --- The functions of libibverbs

#undef ibv_reg_mr

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* const domain = Make<ibv_pd>();
  domain->context = context;
  return domain;
}

int ibv_dealloc_pd(ibv_pd* domain) { return Destroy(domain); }

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* bytes, size_t size, int access) {
  FakeRdma& rdma = FakeRdma::Instance();
  const bool pins = (access & IBV_ACCESS_ON_DEMAND) == 0;
  if (const int error = pins && rdma.pin_error != 0 ? rdma.pin_error : rdma.register_error; error != 0) {
    errno = error;
    return nullptr;
  }
  rdma.last_access = static_cast<unsigned>(access);
  auto* const mr = Make<ibv_mr>();
  mr->context = domain->context;
  mr->pd = domain;
  mr->addr = bytes;
  mr->length = size;
  mr->lkey = rdma.next_number++;
  mr->rkey = mr->lkey + 1000;
  return mr;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* bytes, size_t size, uint64_t /*iova*/, unsigned access) {
  return ibv_reg_mr(domain, bytes, size, static_cast<int>(access));
}

int ibv_dereg_mr(ibv_mr* mr) { return Destroy(mr); }

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* const channel = Make<ibv_comp_channel>();
  channel->context = context;
  channel->fd = ::eventfd(0, EFD_CLOEXEC);
  return channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  ::close(channel->fd);
  return Destroy(channel);
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel, int /*vector*/) {
  auto* const queue = Make<ibv_cq>();
  queue->context = context;
  queue->channel = channel;
  queue->cq_context = user;
  queue->cqe = entries;
  return queue;
}

int ibv_resize_cq(ibv_cq* queue, int entries) {
  FakeRdma::Instance().resizes.push_back(entries);
  queue->cqe = entries;
  return 0;
}

int ibv_destroy_cq(ibv_cq* queue) { return Destroy(queue); }

// The descriptor of the channel counts the events.
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** user) {
  uint64_t events = 0;
  if (::read(channel->fd, &events, sizeof(events)) != sizeof(events)) return -1;
  *queue = nullptr;
  *user = nullptr;
  return 0;
}

void ibv_ack_cq_events(ibv_cq* /*queue*/, unsigned /*count*/) {}

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* /*attributes*/) {
  auto* const queue = Make<ibv_srq>();
  queue->context = domain->context;
  queue->pd = domain;
  return queue;
}

int ibv_destroy_srq(ibv_srq* queue) {
  ForgetReceives(queue);
  return Destroy(queue);
}

int ibv_modify_qp(ibv_qp* /*pair*/, ibv_qp_attr* attributes, int mask) {
  FakeRdma& rdma = FakeRdma::Instance();
  if (rdma.modify_fails) return EIO;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) rdma.retry_timer = attributes->min_rnr_timer;
  if ((mask & IBV_QP_STATE) != 0 && attributes->qp_state == IBV_QPS_ERR) rdma.in_error = true;
  return 0;
}

// --- The functions of librdmacm

rdma_event_channel* rdma_create_event_channel() {
  auto* const channel = Make<rdma_event_channel>();
  channel->fd = ::eventfd(0, EFD_CLOEXEC);
  return channel;
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
  ::close(channel->fd);
  Destroy(channel);
}

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* user, rdma_port_space space) {
  *id = Make<rdma_cm_id>();
  (*id)->verbs = FakeRdma::Instance().context();
  (*id)->channel = channel;
  (*id)->context = user;
  (*id)->ps = space;
  FakeRdma::Instance().last_id = *id;
  return 0;
}

int rdma_destroy_id(rdma_cm_id* id) {
  EXPECT_EQ(id->qp, nullptr) << "the identity still has a queue pair";
  return Destroy(id);
}

int rdma_resolve_addr(rdma_cm_id* /*id*/, sockaddr* /*from*/, sockaddr* /*to*/, int /*ms*/) { return 0; }
int rdma_resolve_route(rdma_cm_id* /*id*/, int /*ms*/) { return 0; }
int rdma_set_option(rdma_cm_id* /*id*/, int /*level*/, int /*name*/, void* /*value*/, size_t /*size*/) { return 0; }

int rdma_create_qp(rdma_cm_id* id, ibv_pd* domain, ibv_qp_init_attr* attributes) {
  FakeRdma& rdma = FakeRdma::Instance();
  rdma.inline_asked.push_back(attributes->cap.max_inline_data);
  if (rdma.pair_error != 0) return FailWith(rdma.pair_error);
  if (attributes->cap.max_inline_data > rdma.inline_most) return FailWith(EINVAL);
  id->qp = Make<ibv_qp>();
  id->qp->context = domain->context;
  id->qp->pd = domain;
  id->qp->srq = attributes->srq;
  id->qp->qp_num = rdma.next_number++;
  return 0;
}

void rdma_destroy_qp(rdma_cm_id* id) { FakeRdma::Instance().Destroy(std::exchange(id->qp, nullptr)); }

int rdma_connect(rdma_cm_id* /*id*/, rdma_conn_param* param) {
  const auto* const first = static_cast<const std::byte*>(param->private_data);
  FakeRdma::Instance().knock.assign(first, first + param->private_data_len);
  return 0;
}

int rdma_accept(rdma_cm_id* /*id*/, rdma_conn_param* /*param*/) {
  ++FakeRdma::Instance().accepts;
  return 0;
}

int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  if (FakeRdma::Instance().migrate_fails) return FailWith(EINVAL);
  id->channel = channel;
  return 0;
}

int rdma_disconnect(rdma_cm_id* /*id*/) {
  ++FakeRdma::Instance().disconnects;
  return FakeRdma::Instance().disconnect_fails ? FailWith(EINVAL) : 0;
}

// The descriptor of the channel is readable until there is no event.
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  auto& events = FakeRdma::Instance().events;
  uint64_t count = 0;
  if (events.empty()) {
    [[maybe_unused]] const ssize_t n = ::read(channel->fd, &count, sizeof(count));
    return FailWith(EAGAIN);
  }
  *event = events.front().release();
  events.pop_front();
  return 0;
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  delete event;
  return 0;
}

}  // extern "C"

}  // namespace erda::fabric::verbs

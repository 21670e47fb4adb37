#include "fabric/verbs/work_maker.h"

#include <arpa/inet.h>

#include <cassert>
#include <cstring>

namespace erda::fabric::verbs {

namespace {

ibv_wr_opcode OpcodeOf(OpKind kind) {
  switch (kind) {
    case OpKind::kRead:
      return IBV_WR_RDMA_READ;
    case OpKind::kWrite:
      return IBV_WR_RDMA_WRITE;
    case OpKind::kWriteImm:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    default:
      return IBV_WR_SEND;
  }
}

void SetPlace(const PeerPlace& place, ibv_send_wr* work) {
  work->wr.rdma.remote_addr = place.address;
  work->wr.rdma.rkey = place.key;
}

void AddLocalBytes(const Request& request, uint32_t inline_bytes, ibv_send_wr* work, ibv_sge* piece) {
  const auto& local = request.work.local;
  if (local.empty()) return;
  *piece = {reinterpret_cast<uint64_t>(local.data()), static_cast<uint32_t>(local.size()), request.local_key};
  work->sg_list = piece;
  work->num_sge = 1;
  if (request.work.kind != OpKind::kRead && local.size() <= inline_bytes) work->send_flags |= IBV_SEND_INLINE;
}

void MakeBinding(const Window* window, ibv_send_wr* work) {
  assert(window != nullptr);
  work->opcode = IBV_WR_BIND_MW;
  work->bind_mw = {window->window, window->key, window->binding};
}

}  // namespace

void MakeWork(const Request& request, const PeerOffer& peer, const Windows& windows, uint32_t inline_bytes,
              ibv_send_wr* work, ibv_sge* piece) {
  std::memset(work, 0, sizeof(*work));
  work->opcode = OpcodeOf(request.work.kind);
  AddLocalBytes(request, inline_bytes, work, piece);
  switch (request.purpose) {
    case Purpose::kOpenWindow:
      return MakeBinding(windows.Find(request.window), work);
    case Purpose::kCloseWindow:
      work->opcode = IBV_WR_LOCAL_INV;
      work->invalidate_rkey = request.window;
      return;
    case Purpose::kTellCredit:
      return SetPlace(peer.told(), work);
    case Purpose::kAskCredit:
      return SetPlace(peer.consumed(), work);
    default:
      break;
  }
  work->imm_data = htonl(request.work.imm);
  if (request.work.kind != OpKind::kSend) SetPlace(peer.Find(request.work.remote), work);
}

}  // namespace erda::fabric::verbs

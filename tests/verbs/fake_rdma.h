// libibverbs and librdmacm without a device.
//
// The functions of both libraries that Erda calls are defined in fake_rdma.cc, and the linker prefers them to those of
// the libraries. They record each call's effect. The test plays the device: it reads the records, and says which
// requests complete and which events come.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace erda::fabric::verbs {

// The device of a test. There is one at a time. Its destructor fails the test if Erda keeps an object of the device.
class FakeRdma {
 public:
  // A request that a queue pair has received.
  struct Sent {
    ibv_qp* pair = nullptr;
    ibv_send_wr work{};
    ibv_sge piece{};  // Empty if the request has no local bytes.
  };
  // A receive that a queue has received.
  struct Receive {
    void* queue = nullptr;  // An ibv_qp or an ibv_srq.
    uint64_t id = 0;
    std::byte* data = nullptr;
  };

  FakeRdma();
  ~FakeRdma();
  FakeRdma(const FakeRdma&) = delete;
  FakeRdma& operator=(const FakeRdma&) = delete;

  static FakeRdma& Instance();

  [[nodiscard]] ibv_context* context() { return &extended_.context; }
  // The protection domain and queue pair of a test that has no Device.
  [[nodiscard]] ibv_pd* domain() { return &domain_; }
  [[nodiscard]] ibv_qp* pair() { return &pair_; }

  // Lets the next poll of the completion queue find this.
  void Complete(const ibv_wc& wc) { completions.push_back(wc); }
  // Lets the completion queue report this request.
  void Complete(const Sent& sent, ibv_wc_status status = IBV_WC_SUCCESS);
  // Lets rdma_cm report this. `private_data` is that of a refusal.
  void Happen(rdma_cm_id* id, rdma_cm_event_type type, int status = 0, std::vector<std::byte> private_data = {});
  // Windows and queue pairs of the device. A queue pair must go after its windows.
  void Bind(ibv_qp* pair, ibv_mw* window) { bound_.emplace_back(pair, window); }
  void Forget(ibv_mw* window);
  // Drops the completions of the queue pair with it, as some devices do.
  void Destroy(ibv_qp* pair);

  // Returns the requests that have come since the last call.
  std::vector<Sent> TakeSent();

  // The abilities of the device. Erda asks for them when it opens the device or makes a queue pair.
  ibv_device_attr attributes{};
  bool pages_on_demand = false;
  bool flushes_natively = false;
  bool has_windows = true;     // False: the kernel's driver has windows, and the library has none.
  uint32_t inline_most = 512;  // More bytes inline are refused.

  // Failures. 0 or false: the call works.
  int post_error = 0;  // The device takes `post_taken` requests of a chain, and refuses the next one with this.
  size_t post_taken = 0;
  int pin_error = 0;       // Of registering memory that is not paged on demand.
  int window_error = 0;    // Of allocating a window.
  int register_error = 0;  // Of registering memory.
  int pair_error = 0;      // Of making a queue pair, also without inline data.
  bool disconnect_fails = false;
  bool modify_fails = false;
  bool migrate_fails = false;

  // The effects of Erda's calls.
  std::vector<Sent> sent;
  std::vector<size_t> doorbells;  // The number of requests of each.
  std::vector<Receive> receives;
  std::vector<uint32_t> freed_windows;  // Their handles.
  std::vector<int> resizes;             // Of completion queues.
  std::vector<uint32_t> inline_asked;   // Of each try to make a queue pair.
  std::vector<std::byte> knock;         // The private data of the last rdma_connect.
  rdma_cm_id* last_id = nullptr;        // The identity that was made last.
  unsigned last_access = 0;             // The rights of the memory that was registered last.
  std::vector<ibv_wc> at_destruction;   // Completions that come when a queue pair is destroyed.
  std::deque<ibv_wc> before_arming;     // Completions that come just before the queue is armed, without a signal.
  int armed = 0;                        // How often a completion queue was.
  int disconnects = 0;
  int accepts = 0;
  uint8_t retry_timer = 0;  // Of a peer that finds no receive (min_rnr_timer).
  bool in_error = false;    // A queue pair was put into the error state.
  // Objects of the device that were made and are still there.
  int objects = 0;

  std::deque<ibv_wc> completions;
  std::deque<std::unique_ptr<rdma_cm_event>> events;
  uint32_t next_number = 1;  // Of keys, windows and queue pairs.

 private:
  ibv_device device_{};
  verbs_context extended_{};  // Contains the context.
  ibv_pd domain_{};
  ibv_qp pair_{};
  std::vector<std::vector<std::byte>> private_data_;
  verbs_context dead_{};  // Of destroyed queue pairs. Each use of it fails the test.
  std::vector<std::unique_ptr<ibv_qp>> destroyed_;
  std::vector<std::pair<ibv_qp*, ibv_mw*>> bound_;
};

}  // namespace erda::fabric::verbs

// The verbs fabric without the engine: a listening end and a connecting one, in this process and thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fixture.h"
#include "lab/fixture.h"

namespace erda {

class FabricLab : public LabTest {
 protected:
  void SetUp() override;

  // Asks at Address(). The outcome is among the client's events.
  std::unique_ptr<fabric::Channel> Ask(uint32_t message_depth = 64);
  // Returns a connected channel. Returns null if the channel fails.
  std::unique_ptr<fabric::Channel> Connect();
  // Sends a message from the client to the server, and waits until it arrives.
  testing::AssertionResult Works(fabric::Channel& channel);

  // Accepts all peers that ask, and polls both ends.
  void Pump();
  testing::AssertionResult PumpUntil(const std::function<bool()>& done);

  std::vector<std::shared_ptr<fabric::Fabric>> fabrics_;
  fabric::End server_;
  fabric::End client_;
  std::unique_ptr<fabric::Listener> listener_;
  std::vector<std::unique_ptr<fabric::Channel>> accepted_;

 private:
  int messages_ = 0;
};

// Returns the number of the end's events of this channel and kind.
size_t CountOf(const fabric::End& end, const fabric::Channel* channel, fabric::OpKind kind);

}  // namespace erda

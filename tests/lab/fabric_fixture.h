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

  // Asks at Address(); what comes of it is among the client's events.
  std::unique_ptr<fabric::Channel> Ask(uint32_t message_depth = 64);
  // A channel that is up; null if it fails.
  std::unique_ptr<fabric::Channel> Connect();
  // Whether a message gets through.
  testing::AssertionResult Works(fabric::Channel& channel);

  // Lets both ends go on: the server's accepts all who ask.
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

// How many of the end's events are of this channel and kind.
size_t CountOf(const fabric::End& end, const fabric::Channel* channel, fabric::OpKind kind);

}  // namespace erda

// The main function of these tests: the program also runs as a peer of its tests.
#include <gtest/gtest.h>

#include "fabric/child.h"

int main(int argc, char** argv) {
  int exit_code = 0;
  if (erda::fabric::Child::Run(argc, argv, &exit_code)) return exit_code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

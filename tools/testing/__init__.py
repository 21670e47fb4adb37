"""The test command: tools/test starts it."""

"""The test command, which tools/test starts."""

"""The parts of tools/paper."""

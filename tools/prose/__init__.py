"""The parts of tools/check-prose."""

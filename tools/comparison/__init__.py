"""What tools/compare consists of."""

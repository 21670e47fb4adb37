"""What tools/paper consists of."""

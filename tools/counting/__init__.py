"""The parts of tools/micro: counts of instructions by callgrind, their baseline, and where they go."""

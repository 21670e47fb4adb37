"""What the tools that measure have in common beside their reports: arguments, programs that they run, progress, signals."""

"""Code that the measuring tools share beside their reports: arguments, programs that they run, progress, signals."""

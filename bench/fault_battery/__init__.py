"""What scripts/fault-battery does to runs, and where."""

"""Fault injection into training runs for scripts/fault-battery."""

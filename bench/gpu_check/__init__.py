"""What scripts/gpu-check tries, measures and reports."""

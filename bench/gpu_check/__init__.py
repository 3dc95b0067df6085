"""The checks, measurements and report of scripts/gpu-check."""

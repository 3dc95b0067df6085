"""Waits with a deadline, and what is said when one passes."""
import time


class Failed(Exception):
    """Something does not hold: a sentence."""


def until(condition, limit_s, what):
    """Waits until condition() returns something, and returns that."""
    end_s = time.monotonic() + limit_s
    while not (found := condition()):
        if time.monotonic() > end_s:
            raise Failed(f"{what}: not within {limit_s:.0f} s")
        time.sleep(0.02)
    return found

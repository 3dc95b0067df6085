"""Waits with a deadline, and the error messages of expired deadlines."""
import time


class Failed(Exception):
    """A check failed; the message is a sentence."""


def until(condition, limit_s, what):
    """Waits until condition() returns a true value, and returns it."""
    end_s = time.monotonic() + limit_s
    while not (found := condition()):
        if time.monotonic() > end_s:
            raise Failed(f"{what}: not within {limit_s:.0f} s")
        time.sleep(0.02)
    return found

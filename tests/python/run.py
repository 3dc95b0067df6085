#!/usr/bin/python3
"""Runs the tests of one file, `run.py truth_test`; ends with 77 and the reason if PyTorch cannot be imported."""

import importlib
import sys
import unittest

for needed in ("numpy", "torch"):
    try:
        importlib.import_module(needed)
    except ImportError as error:
        print(f"skipped: {sys.executable} cannot import {needed} ({error}); apt-get install python3-{needed}")
        sys.exit(77)

unittest.main(module=sys.argv.pop(1), verbosity=2, warnings="ignore")

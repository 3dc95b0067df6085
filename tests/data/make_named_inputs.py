#!/usr/bin/python3
"""Arrays of several inputs as NumPy writes them: tests/data/make_named_inputs.py FOLDER writes those of tests/data/golden/named_inputs."""

import os
import sys

import numpy

PARTS = {
    "inputs.input_ids": numpy.array([[7, 8, 9], [10, 11, 12]], dtype=numpy.int16),
    "inputs.attention_mask": numpy.array([[True, True, False], [True, False, False]]),
    "inputs.pixel_values": numpy.array([[[[0.25, 1.0]]], [[[-3.0, 0.0]]]], dtype=numpy.float32),
    "inputs.token_type_ids": numpy.array([[0, 0, 1], [0, 1, 1]], dtype=numpy.int8),
    "targets": numpy.array([0, 1], dtype=numpy.int64),
    "eval_inputs.input_ids": numpy.array([[13, 14, 15]], dtype=numpy.int16),
    "eval_inputs.attention_mask": numpy.array([[True, True, True]]),
    "eval_inputs.pixel_values": numpy.array([[[[0.5, -1.25]]]], dtype=numpy.float32),
    "eval_inputs.token_type_ids": numpy.array([[0, 1, 1]], dtype=numpy.int8),
    "eval_targets": numpy.array([3], dtype=numpy.int64),
}

if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, array in PARTS.items():
        numpy.save(os.path.join(sys.argv[1], f"{name}.npy"), array)

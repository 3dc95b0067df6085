#!/usr/bin/env python3
"""Makes the small checkpoint that the tests of every later version read.

make_golden.py MOTLEY FOLDER: trains two steps with that program and writes their checkpoint as FOLDER/step-000002.
`golden/version-N` comes from the last program that wrote version N. It is never regenerated; otherwise it would no
longer prove that its output stays readable. A new version gets a new folder. tensors.txt beside the folders does not
change: the new checkpoint must hold the same values. (They were made on an x86-64 processor with AVX-512; other
processors may round differently, see docs/numerics.md.) Read by golden_checkpoint_test.cc and
tests/training/golden_state_test.cc.

The plan covers what a checkpoint can store: two stages, the second on two machines with a compressed all-reduce, so
that the checkpoint has error-feedback residuals.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

CONFIG = """\
[model]
kind = "mlp"
layers = 1
width = 8
context = 2
vocab = 8
[data]
kind = "synthetic"
[train]
steps = 4
global_batch = 4
micro_batch = 1
warmup_steps = 1
lr = 1e-2
[checkpoint]
every = 0
[run]
threads = 1
restarts = 0
"""

CLUSTER = """\
[network]
trusted = true
[[machine]]
name = "here"
address = "127.0.0.1"
[[machine]]
name = "there"
address = "127.0.0.1"
"""


def rank(machine):
    return {"machine": machine, "device": "cpu", "threads": 1, "link_mbps": 0, "compute_s": 0.001,
            "memory_bytes": 1000000}


def chunk(first_layer, layer_count, shares):
    replicas = [{"rank": rank, "micro_batches": share, "forward_us": 1, "backward_input_us": 1,
                 "backward_weight_us": 1} for rank, share in shares.items()]
    return {"first_layer": first_layer, "layer_count": layer_count, "replicas": replicas, "codec": "none",
            "recompute": False, "in_flight": 0, "queued_weights": 0, "hop_us": 0}


PLAN = {
    "format": "motley.plan",
    "version": 6,
    "model_hash": "b6ae7995d571d1bd5d9dd5f3ebe61ed5",
    "schedule": "1f1b",
    "gradient_codec": "int8",
    "micro_batch": 1,
    "micro_batches": 4,
    "predicted_step_s": 0.001,
    "ranks": [rank("here"), rank("here"), rank("there")],
    "chunks": [chunk(0, 2, {0: 4}), chunk(2, 1, {1: 2, 2: 2})],
    "notes": [],
}


def main():
    program, folder = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        made = pathlib.Path(name)
        (made / "job.toml").write_text(CONFIG)
        (made / "cluster.toml").write_text(CLUSTER)
        (made / "plan.json").write_text(json.dumps(PLAN))
        words = ["train", "job.toml", "--run", "run", "--plan", "plan.json", "--cluster", "cluster.toml",
                 "--stop-after", "2"]
        subprocess.run([program, *words], cwd=made, check=True)
        shutil.copytree(made / "run/checkpoints/step-000002", folder / "step-000002")


if __name__ == "__main__":
    main()

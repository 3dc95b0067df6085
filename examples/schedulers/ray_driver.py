"""Trains train.toml on the nodes of a Ray cluster: python ray_driver.py train.toml 3"""

import os
import secrets
import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

config, nodes, more = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
ray.init(address="auto")
group = placement_group([{"CPU": 1}] * nodes, strategy="STRICT_SPREAD")  # one task on each node
ray.get(group.ready())


@ray.remote(num_cpus=1, max_retries=0)
def look():
    return os.path.exists(config), ray.util.get_node_ip_address()


@ray.remote(num_cpus=1, max_retries=0)
def lend(variables):
    command = ["motley", "launch", config, "--from-env", *more]
    return subprocess.run(command, env=os.environ | variables, check=False).returncode


def on_node(task, bundle):
    return task.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, bundle))


# Process 0 is on a node that sees train.toml, on this one if possible.
seen = ray.get([on_node(look, bundle).remote() for bundle in range(nodes)])
here = ray.util.get_node_ip_address()
bundles = sorted(range(nodes), key=lambda bundle: (not seen[bundle][0], seen[bundle][1] != here))
common = {
    "WORLD_SIZE": str(nodes),
    "MASTER_ADDR": seen[bundles[0]][1],
    "MOTLEY_SECRET": secrets.token_hex(32),  # the nodes need not see one folder
}
tasks = [
    on_node(lend, bundle).remote(common | {"RANK": str(rank)})
    for rank, bundle in enumerate(bundles)
]
sys.exit(ray.get(tasks[0]))  # the status of process 0 is that of the run

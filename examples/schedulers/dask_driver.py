"""Trains train.toml on a Dask cluster: python dask_driver.py SCHEDULER:PORT train.toml"""

import os
import secrets
import subprocess
import sys
from urllib.parse import urlsplit

from distributed import Client

client = Client(sys.argv[1])
config, more = os.path.abspath(sys.argv[2]), sys.argv[3:]
sees_config = client.run(os.path.exists, config)
machines = {}  # one worker on each; process 0 is on one that sees train.toml
for worker in sorted(sees_config, key=lambda worker: not sees_config[worker]):
    machines.setdefault(urlsplit(worker).hostname, worker)


def lend(variables, config, more):
    command = ["motley", "launch", config, "--from-env", *more]
    return subprocess.run(command, env=os.environ | variables, check=False).returncode


common = {
    "WORLD_SIZE": str(len(machines)),
    "MASTER_ADDR": next(iter(machines)),
    "MOTLEY_SECRET": secrets.token_hex(32),  # the machines need not see one folder
}
tasks = [
    client.submit(
        lend, common | {"RANK": str(rank)}, config, more, workers=worker, retries=0, pure=False
    )
    for rank, worker in enumerate(machines.values())
]
sys.exit(tasks[0].result())  # the status of process 0 is that of the run

#!/bin/sh
# Trains train.toml on three machines, each started by this line: torchrun.sh HOST-OF-THE-FIRST
# One process for each machine is enough: it offers all of the machine's devices.
# All machines see the folder of train.toml and run.dir; else see --secret-file. (torchrun takes --run for its own.)
exec torchrun --no-python --nnodes=3 --nproc-per-node=1 --max-restarts=3 \
  --rdzv-backend=c10d --rdzv-endpoint="$1":29400 --rdzv-id=first \
  motley launch train.toml --set run.dir=runs/first --from-env

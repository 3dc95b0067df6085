#!/bin/sh
# Trains train.toml on the machines of a host file, by Open MPI: mpirun.sh hosts
# The first options leave time to save the step when mpirun is stopped, and let the others go on when
# one process is lost; mpirun's own status is then always 0. With MPICH: mpiexec -f hosts -ppn 1 motley launch train.toml --from-env
exec mpirun --mca odls_base_sigkill_timeout 60 --enable-recovery \
  --hostfile "$1" --map-by ppr:1:node --bind-to none \
  motley launch train.toml --run runs/first --from-env

#!/bin/sh
# Trains train.toml on the hosts of a host file of mpirun, or of a PBS, LSF or Grid Engine job. They are reached by ssh.
#   sh hostfile.sh hosts        sh hostfile.sh pbs
motley init --from "$1" --cluster cluster.toml && exec motley launch train.toml --cluster cluster.toml

#!/bin/bash
# A SLURM of one node on the loopback interface, once: a job of dream.run is submitted, put in the queue again after its
# first checkpoint, and goes on. Needs root, Debian's slurmctld, slurmd, slurm-client and munge, and the extra `sweeps`.
#   experiments/slurm_once.sh [folder]     the folder keeps configuration, logs and the run; default: a new one in /tmp
set -euo pipefail
folder=$(realpath "${1:-$(mktemp -d /tmp/slurm_once.XXXX)}")
python=${PYTHON:-python}
mkdir -p "$folder"/{state,spool,log} && cd "$folder"
name=$(hostname -s)
install -d -m 700 "$folder/munge"
[ -f munge/key ] || { head -c 1024 /dev/urandom > munge/key; chmod 400 munge/key; }
cat > slurm.conf <<EOF
ClusterName=once
SlurmctldHost=$name(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=2,sched_min_interval=0
JobRequeue=1
KillWait=60
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=once Nodes=ALL Default=YES MaxTime=60 State=UP
EOF
export SLURM_CONF=$folder/slurm.conf
chmod 755 "$folder"
munged --key-file="$folder/munge/key" --socket="$folder/munge.socket" --pid-file="$folder/munge.pid" \
  --log-file="$folder/log/munged" --seed-file="$folder/munge/seed" --force
end() {
  scancel --user=root 2> /dev/null || true
  sleep 1
  for file in slurmd slurmctld munge; do [ -f "$file.pid" ] && kill "$(cat "$file.pid")" 2> /dev/null || true; done
}
trap end EXIT
slurmctld -i
slurmd -N "$name"
for _ in $(seq 60); do sinfo -h -o %T 2> /dev/null | grep -q idle && break; sleep 1; done
sinfo

"$python" -m dream.run -m preset=tiny env=kuhn_poker algo=cfr tracking.mode=disabled eval.opponents=[] \
  eval.every=1000000 checkpoint.every=500 iterations="${ITERATIONS:-60000}" seed=1,2 run_dir="$folder/sweep" \
  hydra/launcher=slurm hydra.launcher.gpus_per_node=null hydra.launcher.mem_gb=null hydra.launcher.cpus_per_task=1 \
  hydra.launcher.timeout_min=30 > log/sweep 2>&1 &
sweep=$!
for _ in $(seq 300); do ls "$folder"/sweep/0/checkpoints/[0-9]* > /dev/null 2>&1 && break; sleep 1; done
squeue -o "%i %T %r" | tee log/before
job=$(squeue -h -t RUNNING -o %i | head -1)
before=$(ls "$folder/sweep/0/checkpoints" | grep -E '^[0-9]+$' | sort -n | tail -1)
echo "job $job has a checkpoint of iteration $before: scontrol requeue $job"
scontrol requeue "$job"
sleep 3
squeue -o "%i %T %r %S"
scontrol show job "$job" | grep -oE "Restarts=[0-9]+|JobState=[A-Z]+|EligibleTime=[^ ]+"
wait "$sweep" && echo "the sweep ended with 0"
cat log/sweep
for log in "$folder"/sweep/.submitit/*/*_log.out; do echo "== $log"; grep -E "iteration [0-9]+/|from iteration|saved|SIG" "$log" || true; done
grep -H started_at_iteration "$folder"/sweep/*/versions.json

#!/bin/bash
# A SLURM of one node on the loopback interface, once: a sweep of two jobs is submitted, interrupted before a checkpoint is
# due, put in the queue again, and goes on. Needs root, Debian's slurmctld, slurmd, slurm-client and munge, and the extra
# `sweeps`.
#   experiments/slurm_once.sh [way] [folder]
# way: preempt (default), a job of a partition with priority needs the node; limit, the jobs reach their time limit of two
# minutes; requeue, scontrol requeue. GRACE: the partition's GraceTime in seconds (0). folder: of configuration, logs and
# runs; default: a new one in /tmp.
set -euo pipefail
way=${1:-preempt}
case $way in
  preempt | limit | requeue) ;;
  *) echo "error: way=$way is not valid; it must be preempt, limit or requeue" >&2; exit 2 ;;
esac
folder=$(realpath "${2:-$(mktemp -d /tmp/slurm_once.XXXX)}")
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
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=once Nodes=ALL Default=YES MaxTime=60 State=UP PriorityTier=1 GraceTime=${GRACE:-0}
PartitionName=urgent Nodes=ALL MaxTime=60 State=UP PriorityTier=2 PreemptMode=OFF
EOF
export SLURM_CONF=$folder/slurm.conf
chmod 755 "$folder"
munged --key-file="$folder/munge/key" --socket="$folder/munge.socket" --pid-file="$folder/munge.pid" \
  --log-file="$folder/log/munged" --seed-file="$folder/munge/seed" --force
end() {
  kill "${sweep:-}" 2> /dev/null || true
  scancel --user=root 2> /dev/null || true
  sleep 1
  for file in slurmd slurmctld munge; do [ -f "$file.pid" ] && kill "$(cat "$file.pid")" 2> /dev/null || true; done
}
trap end EXIT
slurmctld -i
slurmd -N "$name"
for _ in $(seq 60); do sinfo -h -o %T 2> /dev/null | grep -q idle && break; sleep 1; done
sinfo

limits=(hydra.launcher.timeout_min=30)
[ "$way" = limit ] && limits=(hydra.launcher.timeout_min=2 hydra.launcher.signal_delay_s=30)
"$python" -m dream.run -m preset=tiny env=kuhn_poker algo=cfr tracking.mode=disabled eval.opponents=[] \
  eval.every=1000000 checkpoint.every=1000000 algo.updates=2000 iterations="${ITERATIONS:-15000}" seed=1,2 \
  run_dir="$folder/sweep" \
  hydra/launcher=slurm hydra.launcher.gpus_per_node=null hydra.launcher.mem_gb=null hydra.launcher.cpus_per_task=1 \
  "${limits[@]}" > log/sweep 2>&1 &
sweep=$!
records() { cat "$folder"/sweep/*/metrics.jsonl 2> /dev/null | wc -l; }
for _ in $(seq 300); do [ "$(records)" -ge 3 ] && break; sleep 1; done
squeue -o "%i %T %r" | tee log/before
job=$(squeue -h -t RUNNING -o %i | head -1)
echo "$(records) iterations are done, none is saved: $way"
case $way in
  preempt) sbatch --partition=urgent --exclusive --output=log/urgent --wrap "sleep 5" ;;
  requeue) scontrol requeue "$job" ;;
esac
for _ in $(seq 300); do
  scontrol show job "$job" | grep -qE "Restarts=[1-9]|JobState=(FAILED|COMPLETED|CANCELLED)" && break; sleep 1
done
squeue -o "%i %T %r %S"
scontrol show job "$job" | grep -oE "Restarts=[0-9]+|JobState=[A-Z]+|EligibleTime=[^ ]+"
if scontrol show job "$job" | grep -q JobState=FAILED; then
  echo "the job ended and is not in the queue again"
  exit 1
fi
wait "$sweep" && echo "the sweep ended with 0"
cat log/sweep
for log in "$folder"/sweep/.submitit/*/*_log.{err,out}; do
  echo "== $log"
  grep -E "iteration [0-9]+/|from iteration|dropped|SIG[UT]" "$log" || true
done
grep -H started_at_iteration "$folder"/sweep/*/versions.json

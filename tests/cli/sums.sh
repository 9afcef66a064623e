#!/bin/bash
# Sums of samples and weights agree in all views, over recordings of all kinds.  TAP; $TALLY is the
# binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch
have python3 || skip_all "there is no python3"

# A kind whose events have no names, which then can't choose one of them, needs no place here.
for kind in bpf_output branch_leaves branch_stacks busy_zero_exiting busy_zero_outside cgroups deferred deferred_lost idle \
	idle_functions lbr memory memory_costs off_cpu off_cpu_unknown off_cpu_wakers only_idle_functions side_events simpleperf \
	tool_pipe traced_in_samples user_in_kernel weights_beyond_64_bits weights_of_64_bits weights_of_ones; do
	"$here/make_recording.py" "$kind" "$kind.data" || exit 1
done
timeout 60 "$TALLY" record -q -F 999 -e cpu-clock,page-faults -o program.data -- "$WORKLOAD" threads >out 2>err || rm -f program.data
timeout 60 "$TALLY" record -q -F 199 -a -o machine.data -- sleep 0.3 >out 2>err || rm -f machine.data
"$here/sums.py" ./*.data "$SOURCE"/tests/corpus/perfdata/*

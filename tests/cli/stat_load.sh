#!/bin/bash
# `tally stat` under load: 1,000 threads, storms of processes, more events than descriptors,
# hundreds of tracepoints.  TAP; $TALLY is the binary, $CROWD a program with known system calls and
# processes.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8
tally=$TALLY crowd=$CROWD

run() { expected=$1; shift; "$@" >out 2>&1 </dev/null; status=$?; [ "$status" = "$expected" ] || { echo "status $status" >>out; false; }; }
has() { grep -qF -- "$1" out; }
json() { python3 -c '
import json,sys
docs=[json.loads(l) for l in open("out") if l.startswith("{")]
d=docs[-1]; e=d["events"]; n={x["name"]:x for x in e}
sys.exit(not eval("(" + sys.argv[1] + ")"))' "$1"; }

traces=no; $tally stat -j -e syscalls:sys_enter_getppid true 2>out && grep -q '"state":"counted"' out && traces=yes
has_perf=no; perf stat -x, -e task-clock true >out 2>&1 && has_perf=yes

# attach THREADS CALLS OPTION…: counts a crowd from outside: all of its calls and no others
mkfifo ctl ack
exec 7<>ack
attach() {
	threads=$1 calls=$2; shift 2
	mkfifo hold said
	$crowd threads "$threads" "$calls" <hold >said &
	member=$!
	exec 8>hold
	read -r -t 20 line <said
	$tally stat "$@" --control fifo:ctl,ack -p $member 8>&- 2>out &
	stat=$!
	echo ping >ctl
	IFS= read -r -t 60 line <&7
	exec 8>&-
	wait $stat
	status=$?
	wait $member
	rm -f hold said
	return $status
}
if [ $traces = yes ]; then
	attach 1000 10 -j -e syscalls:sys_enter_getppid && json "e[0]['value'] == 10000"
	check "1,000 attached threads: no call is missed"
	attach 1000 10 -j --per-thread -e syscalls:sys_enter_getppid &&
		json "len(e) == 1001 and sum(x['value'] for x in e) == 10000 and e[999]['value'] == 10 and e[1000]['value'] == 0"
	check "1,000 threads, each with its own calls"
	attach 1000 10 -x, --per-thread --no-zero -e syscalls:sys_enter_getppid && [ "$(grep -c '^t[0-9]*-[0-9]*,10,' out)" = 1000 ] &&
		[ "$(wc -l <out)" = 1000 ]
	check "1,000 threads in CSV, without the one that counted nothing"
	run 0 $tally stat -j -e syscalls:sys_enter_getppid $crowd threads 1000 10 && json "e[0]['value'] == 10000"
	check "1,000 threads of a command, inherited"
	# 1,500 processes a second, each ended within a millisecond: the sum must include their
	# counts.
	run 0 $tally stat -j -e sched:sched_process_exec,sched:sched_process_fork,syscalls:sys_enter_exit_group \
		$crowd storm 1500 && json "n['sched:sched_process_fork']['value'] == 1500 and
		1500 <= n['sched:sched_process_exec']['value'] <= 1501 and
		n['syscalls:sys_enter_exit_group']['value'] == 1501 and n['syscalls:sys_enter_exit_group']['enabled_ns'] > 0"
	check "1,500 short processes: each fork, exec and exit is counted"
	run 0 $tally stat -j -r 5 -e sched:sched_process_fork $crowd storm 100 && json "e[0]['value'] == 100 and e[0]['sigma'] == 0"
	check "and the count is the same each time"
	run 0 $tally stat -j -i -e sched:sched_process_fork,syscalls:sys_enter_exit_group $crowd storm 100 &&
		json "e[0]['value'] == 100 and e[1]['value'] == 1"
	check "-i leaves the children's counts out"
else
	for name in "1,000 threads, attached to: no call is missed" "1,000 threads, each with its own calls" \
		"1,000 threads in CSV, without the one that did nothing" "1,000 threads of a command, by inheritance" \
		"a storm of 1,500 processes: each fork, exec and exit is counted" "and each time the same" \
		"-i leaves the children's out"; do
		skip "$name" "needs tracepoints"
	done
fi

# Events that need no tracepoint, compared with perf: the number of page faults varies between runs.
if [ $has_perf = yes ]; then
	run 0 perf stat -x, -e page-faults,minor-faults $crowd storm 300
	theirs=$(awk -F, '$3 ~ /^page-faults/ { print $1 }' out)
	run 0 $tally stat -x, -e page-faults,minor-faults $crowd storm 300
	ours=$(awk -F, '$3 ~ /^page-faults/ { print $1 }' out)
	[ -n "$ours" ] && [ -n "$theirs" ] && [ $((ours * 100)) -gt $((theirs * 97)) ] && [ $((ours * 100)) -lt $((theirs * 103)) ] ||
		{ echo "tally $ours, perf $theirs" >out; false; }
	check "page faults of many short processes are perf's within 3 %"
else
	skip "page faults of many short processes are perf's within 3 %" "needs perf"
fi

# --- descriptors ----------------------------------------------------------------------------------------------------
limited() { (ulimit -Sn 64; ulimit -Hn "$1"; shift; "$@"); }
mkfifo hold said
$crowd threads 100 1 <hold >said & member=$!
exec 8>hold
read -r -t 20 line <said
if $tally stat -j -e task-clock -p $member --timeout 10 2>out && grep -q '"source":"kernel"' out; then
	run 0 limited 512 $tally stat -j -e task-clock,page-faults -p $member --timeout 50 8>&- && json "e[0]['state'] == 'counted' and e[1]['state'] == 'counted'"
	check "the soft limit of descriptors is raised to the hard limit"
	run 1 limited 128 $tally stat -j -e task-clock,page-faults -p $member --timeout 50 8>&- && has '2 events on 101 threads need a file descriptor each; the limit is 128' && has 'ulimit'
	check "beyond the hard limit, tally counts nothing rather than a part"
else
	skip "the soft limit of descriptors is raised to the hard limit" "perf events are refused"
	skip "beyond the hard limit, tally counts nothing rather than a part" "perf events are refused"
fi
exec 8>&-
wait $member

# --- globs ------------------------------------------------------------------------------------------------------------
if [ $traces = yes ] && [ $has_perf = yes ]; then
	# The kernel takes 39 ms to close each, so perf gets only a few.
	perf stat -x, -e 'syscalls:sys_enter_se*' true 2>out; cut -d, -f3 out | sort >theirs
	$tally stat -x, -e 'syscalls:sys_enter_se*' true 2>out; grep -v '^#' out | cut -d, -f3 >ours
	[ "$(wc -l <ours)" -gt 10 ] && diff theirs ours >out
	check "tracepoints by a glob: the same as perf's, in the same order"
	events=/sys/kernel/tracing/events; [ -d $events/syscalls ] || events=/sys/kernel/debug/tracing/events
	run 0 $tally stat -x, -e 'syscalls:*' true && [ "$(grep -c '^[0-9]*,,syscalls:' out)" = "$(ls -d $events/syscalls/sys_* | wc -l)" ]
	check "hundreds of tracepoints by a glob"
	run 0 $tally stat -x, --no-zero -e 'syscalls:sys_*_[e-m]*' true && has syscalls:sys_exit_execve && [ "$(wc -l <out)" -lt 30 ]
	check "--no-zero shows only tracepoints that were hit"
	run 0 $tally stat -a -x, -e 'sched:*' sleep 0.05 && [ "$(wc -l <out)" -gt 15 ]
	check "a glob on all CPUs"
else
	skip "tracepoints by a glob: the same as perf's, in the same order" "needs tracepoints and perf"
	skip "hundreds of tracepoints by a glob" "needs tracepoints"
	skip "--no-zero shows only tracepoints that were hit" "needs tracepoints"
	skip "a glob on all CPUs" "needs tracepoints"
fi

echo "1..$number"

#!/bin/bash
# Each hint is true: what it advises is done, and the hint is gone.  TAP; $TALLY is the binary,
# $WORKLOAD the program of record_workload.c, $SHARES MS spends CPU time.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch XDG_CACHE_HOME=$scratch/cache

tally() { timeout 60 "$TALLY" "$@" >out 2>err </dev/null; }
said() { grep -qF -- "$1" err; }
tally record -o probe -e cpu-clock true || skip_all "cpu-clock can't be sampled: $(head -1 err)"

# ---- said once --------------------------------------------------------------------------------------------------
tally record -o data true
if said 'this machine has no hardware cycle counter'; then
	tally record -o data true
	check "which event is the default is said once" eval '! said "hardware cycle counter"'
	tally record -v -o data true
	check "… and with -v" said 'hardware cycle counter'
else
	skip "which event is the default is said once" "the CPU counts cycles"
fi

# ---- nothing was sampled ----------------------------------------------------------------------------------------
tally record -e cpu-clock -F 1 -o data true
rate=$(sed -n 's/^hint: nothing was sampled: the command used .*; try -F \([0-9]*\)$/\1/p' err)
check "a command too short for the rate: a rate that suffices is computed" test -n "$rate"
tally record -e cpu-clock -F "${rate:-1}" -o data true
check "… and takes samples" eval '! said "nothing was sampled"'

tally record -e cpu-clock -F 99 -o data sh -c "exec 0</dev/null; '$SHARES' 1500 >/dev/null 2>&1 & exit 0"
child=$(sed -n 's/^hint: nothing was sampled: .* which it started, goes on: record it with -p \([0-9]*\)$/\1/p' err)
if said 'nothing was sampled'; then
	check "a child that goes on after its parent is named" test -n "$child"
	tally record -e cpu-clock -F 999 -o data -p "${child:-0}" -- sleep 0.3
	check "… and can be recorded so" eval '! said "nothing was sampled" && said "samples in"'
else
	skip "a child that goes on after its parent is named" "the parent was sampled"
fi

sleep 5 &
tally record -e cpu-clock -o data -p $! -- sleep 0.1
check "an idle process is not sent to a higher rate" eval 'said "and less was used" && ! said "try"'
kill $! 2>/dev/null

if tally record -e sched:sched_switch -o data -- "$WORKLOAD" signals; then
	tally record -e sched:sched_switch --filter 'prev_pid == 987654321' -o data -- "$WORKLOAD" signals
	check "if no hit passed a filter, the filter is named" said 'or no hit passed --filter'
	tally record --switch-events -o data -- "$WORKLOAD" spin
	tally timeline -i data
	check "a timeline does not warn of stacks" eval '[ -s out ] && ! said stacks'
else
	skip "filters" "tracepoints can't be sampled"
fi

# ---- names ------------------------------------------------------------------------------------------------------
printf '#!/bin/sh\n"$1" 50\n' >matrix && chmod +x matrix
for command in record stat; do
	tally $command matrix
	check "$command: a program in this folder is named with its path" said 'hint: there is a file of that name here: ./matrix'
done
tally record -e cpu-clock -o data ./matrix "$SHARES"
check "… and so it runs" eval '! said hint: && said samples'

cp "$SHARES" named_by_me
works() { # starts it; returns when it has its name
	./named_by_me 5000 >/dev/null &
	until [ "$(cat /proc/$!/comm)" = named_by_me ]; do sleep 0.01; done
}
works
busy=$!
tally record -e cpu-clock -o data -p named_by_me -- sleep 0.2
check "-p takes the one process of a name" eval '"$TALLY" report --stdio -i data 2>&1 | grep -q named_by_me'
tally stat -e task-clock -p named_by_me -- sleep 0.1
check "… in stat, too" grep -q "Counts of process $busy" err
works
second=$!
! tally record -o data -p named_by_me -- sleep 0.1
check "several are listed" grep -q "2 processes are named 'named_by_me': choose by number, of " err
kill $busy $second 2>/dev/null
! tally record -o data -p no_such_name -- sleep 0.1
check "none is told" said "no process is named 'no_such_name'"

if [ "$(id -u)" = 0 ] && have unshare && have runuser && unshare -m true 2>err; then
	cp "$TALLY" tally && chmod a+rx . tally
	unshare -m sh -c 'mount -t proc -o hidepid=2 none /proc && runuser -u nobody -- ./tally record -o /dev/null -u 12345 -- true' >out 2>err
	if said 'Permission denied' || said 'mount:'; then
		skip "processes that /proc hides are not called absent" "$(head -1 err)"
	else
		check "processes that /proc hides are not called absent" said 'are hidden: /proc is mounted with hidepid'
	fi
else
	skip "processes that /proc hides are not called absent" "needs root and namespaces"
fi

# ---- perf's other commands, which read tally's recordings -------------------------------------------------------
# reads EVENTS COMMAND WORD: the hint on the command names it; on a recording of these events it prints the word
reads() {
	tally "${2%% *}"
	said "'perf $2 -i tally.data" || { echo "no hint on $2" >out; return 1; }
	tally record -q -a -e "$1" -o tally.data -- sh -c 'for i in 1 2 3 4 5; do /bin/true; sleep 0.01; done' || return 1
	# shellcheck disable=SC2086
	timeout 60 perf $2 -i tally.data $3 >out 2>&1 </dev/null && { [ -z "$4" ] || grep -q -- "$4" out; }
}
if have perf && tally record -q -a -e sched:sched_switch -o probe -- true; then
	check "perf sched reads a recording of tally's" reads 'sched:*' 'sched latency' '' 'Runtime ms'
	check "… and perf timechart" reads 'sched:*' timechart '-o chart.svg' 'trace to chart.svg'
	check "… and perf kmem" reads 'kmem:*' kmem stat 'Total bytes requested'
	check "… and perf trace" reads 'raw_syscalls:*' trace -s 'Summary of events'
	if tally record -q -a -e 'lock:contention_*' -o probe -- true; then
		check "… and perf lock" reads 'lock:contention_*' 'lock contention' '' 'contended'
	else
		skip "… and perf lock" "this kernel has no tracepoints of contention"
	fi
else
	skip "perf's other commands read tally's recordings" "no perf, or no tracepoints"
fi

# ---- Ctrl-C -----------------------------------------------------------------------------------------------------
printf "trap '' INT TERM\n'%s' 2000 >/dev/null\n" "$SHARES" >deaf.sh
timeout 60 "$TALLY" record -e cpu-clock -o data -- sh deaf.sh >out 2>err </dev/null & recorder=$!
sleep 0.5
pkill -INT -P $recorder tally 2>/dev/null || kill -INT $recorder
wait $recorder
check "a command that ignores Ctrl-C: the end of the recording is said, and what tally waits for" \
	said "the recording is complete; 'sh' goes on: waiting for its end"
done_testing

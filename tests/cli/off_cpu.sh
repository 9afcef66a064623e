#!/bin/bash
# record --off-cpu: where tasks wait, and for how long.  TAP; $TALLY is the binary, $WAITS a program
# that prints how long its functions took.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export HOME=$scratch

# ---- times that are known ------------------------------------------------------------------------------------------

if have python3; then
	"$here/make_recording.py" off_cpu made.data
	timeout 60 "$TALLY" script -F tid,time,period made.data >out 2>err
	check "a wait lasts until its task runs again, on any CPU; the idle task's waits do not count, nor a dead task's; a task that calls exec may take the number of a dead thread" \
		test "$(awk '{ print $1, $NF }' out | tr '\n' ' ')" = "11 700 12 250 12 1 13 38000 16 300 "
	timeout 60 "$TALLY" script -F tid,time,period --tid 12 made.data >out 2>err
	check "… also if filters leave other samples out" test "$(awk '{ print $1, $NF }' out | tr '\n' ' ')" = "12 250 12 1 "
	timeout 60 "$TALLY" script -D made.data >out 2>err
	check "-D shows the samples as they were written" eval '[ "$(grep -c "SAMPLE .*period=1$" out)" = 10 ] && [ ! -s err ]'
	timeout 60 "$TALLY" report --stdio made.data >out 2>err
	check "a report shows the total time of waits" grep -q '^5 samples of offcpu-time, 39[.0-9]* µs in all over' out
	check "… with their number, mean and maximum" \
		grep -Eq '39.0 µs +4 +9.74 µs +38.0 µs +waiter' out
	timeout 60 "$TALLY" report -j made.data >out 2>err
	check "… in JSON too" grep -q '"self_longest": 38000' out
	"$here/make_recording.py" off_cpu_unknown unknown.data
	timeout 60 "$TALLY" report --stdio unknown.data >out 2>err
	check "without switches, waits are counted, and a message says so" \
		eval 'grep -q "^10 samples of offcpu-time (" out && grep -q "shown by the number of waits" err'
	timeout 60 "$TALLY" report --stdio -i - <made.data >out 2>err
	check "… also through a pipe" eval 'grep -q "^10 samples of offcpu-time (" out && grep -q "shown by the number of waits" err'
	"$here/make_recording.py" off_cpu_wakers wakers.data
	for i in 0:_text 1:schedule 2:waits_here 3:try_to_wake_up 4:one 5:two 6:handles_it 7:asm_sysvec_timer 8:broken_into 9:_end; do
		echo "ffffffff8100${i%%:*}000 T ${i#*:}"
	done >kallsyms
	timeout 60 "$TALLY" fold --wakers --kallsyms kallsyms wakers.data 2>err | sed 's/^[^;]*;//' | sort >out
	check "a wait is ended by the task that woke it last, even a moment before; not by an idle CPU, nor by the code that an interrupt broke into" \
		diff out - <<'WAKERS'
waits_here;[preempted, waits for a CPU] 900
waits_here;[woken by an interrupt];handles_it;asm_sysvec_timer 300
waits_here;[woken by first];one 200
waits_here;[woken by first];one 700
waits_here;[woken by second];two 400
waits_here;[woken by what was not recorded] 10
waits_here;[woken by what was not recorded] 50
WAKERS
	timeout 60 "$TALLY" report --stdio --wakers --kallsyms kallsyms wakers.data >out 2>err
	check "… and the report tells for how much of the time that task is known" \
		grep -q "^wakers are known for 62% of the time; for 35% tasks were ready and waited for a CPU; for 2% the waker was not recorded$" out
else
	skip "times that are known" "there is no python3"
fi

# ---- who may -------------------------------------------------------------------------------------------------------

if [ "$(id -u)" = 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 1 ] && $nobody true 2>/dev/null; then
	chmod 755 . && cp "$TALLY" ./tally && mkdir -m 777 theirs
	$nobody timeout 60 ./tally record --off-cpu -o theirs/waits.data -- sleep 0.01 >out 2>err
	exited=$?
	check "a user who may not see the kernel is told that waits need it" \
		eval '[ "$exited" = 1 ] && grep -q "offcpu-time.*perf_event_paranoid" err && [ ! -e theirs/waits.data ]'
else
	skip "a user who may not see the kernel is told that waits need it" "needs root, and kernel.perf_event_paranoid above 1"
fi

# ---- a program's ---------------------------------------------------------------------------------------------------

timeout 60 "$TALLY" record --off-cpu --all-user -o waits.data -- "$WAITS" >out 2>err
exited=$?
check "--all-user would leave no waits" eval '[ "$exited" = 2 ] && grep -q "tasks leave a CPU in the kernel" err'
timeout 60 "$TALLY" record --off-cpu -F 999 -o waits.data -- "$WAITS" >took 2>err ||
	{ skip "a program's waits" "the kernel refuses: $(head -c 200 err | tr '\n#' '  ')"; done_testing; }
timeout 60 "$TALLY" fold -i waits.data --event offcpu-time >folded 2>err
# FUNCTION: nanoseconds that it waited, by the recording.  They may differ by the time that
# switching out and in takes.
waited() { awk -v of="$1" '$0 ~ of { sum += $NF } END { print sum + 0 }' folded; }
took() { awk -v of="$1" '$1 == of { print $2 - $3 }' took; }
cat took folded >out
for function in sleeps_long sleeps_briefly; do
	whole=$(took "$function") part=$(waited "$function")
	check "$function: its waits are its whole time minus its CPU time" \
		eval '[ "$part" -le $((whole * 11 / 10 + 1000000)) ] && [ "$part" -ge $((whole * 9 / 10 - 5000000)) ]'
done
whole=$(took works) part=$(waited works)
check "a busy function waits only for its CPU" eval '[ "$part" -le $((whole + 1000000)) ]'
all=$(awk '{ sum += $2 } END { print sum }' took)
check "a wait that is unfinished at the end of the recording lasts until then" eval '[ "$(waited waits_for_ever)" -ge $((all * 9 / 10)) ]'
timeout 60 "$TALLY" record --off-cpu --duration 1 -o end.data -- sleep 30 >out 2>err
timeout 60 "$TALLY" fold -i end.data --event offcpu-time >folded 2>err
check "… also if nothing else is recorded then" eval '[ "$(waited nanosleep)" -ge 300000000 ]' # after a start of up to 0.7 s
timeout 60 "$TALLY" report --stdio -i waits.data --event cpu-clock >out 2>err || timeout 60 "$TALLY" report --stdio -i waits.data --event cycles >out 2>err
check "running code is sampled beside the waits" grep -q ' works$' out
timeout 60 "$TALLY" report --stdio -i waits.data >out 2>err
check "a report shows waits first, whatever else is recorded" \
	eval 'head -n 1 out | grep -q "samples of offcpu-time" && grep -q "samples of \(cpu-clock\|cycles\)" out'
check "… by function, with number, mean and maximum" \
	eval 'grep -Eq "[2-9][0-9]{2} ms +1 +[2-9][0-9]{2} ms +[2-9][0-9]{2} ms .* sleeps_long$" out && grep -Eq " ms +[23][0-9] +[0-9.]+ (ms|µs) +[0-9.]+ ms .* sleeps_briefly$" out'
check "… a stack ends where the task waits, not in the scheduler" eval '! grep -q " \(__\)\{0,1\}schedule \[k\]$" <(sed "/samples of cpu-clock/,\$d; /samples of cycles/,\$d" out)'
timeout 60 "$TALLY" report --stdio -i waits.data --no-children >out 2>err
check "… also without totals" eval '! grep -q " \(__\)\{0,1\}schedule \[k\]$" <(sed "/samples of cpu-clock/,\$d; /samples of cycles/,\$d" out) && grep -q nanosleep out'
timeout 60 "$TALLY" report --stdio -i waits.data --symbol '*nanosleep' >out 2>err
check "… and --symbol finds that function" eval 'head -n 1 out | grep -q "samples of offcpu-time, 2[0-9]* ms"'
timeout 60 "$TALLY" report --stdio -i waits.data --event offcpu-time --scheduler >out 2>err
check "… --scheduler shows the scheduler's frames" grep -q 'schedule \[k\]$' out
timeout 60 "$TALLY" flamegraph -i waits.data --event offcpu-time -o waits.svg >out 2>err
check "a flame graph's stacks end there too" eval '! grep -q "\"__schedule\"\|\"schedule\"" waits.svg && grep -q sleep waits.svg'
timeout 60 "$TALLY" flamegraph -i waits.data --event offcpu-time --scheduler -o scheduler.svg >out 2>err
check "… --scheduler shows the scheduler's frames" grep -q "\"__schedule\"\|\"schedule\"" scheduler.svg
check "… and no warning of the events that were not chosen" eval '! grep -q "left out" err'
check "a flame graph has times" grep -Eq 'offcpu-time · [0-9.]+ (s|ms) in [0-9]+ samples' waits.svg
timeout 60 "$TALLY" flamegraph --off-cpu -o direct.svg -- "$WAITS" >out 2>err
check "… and merges a command's waits" grep -Eq 'offcpu-time · [0-9.]+ (s|ms) in [0-9]+ samples' direct.svg
timeout 60 "$TALLY" flamegraph --off-cpu -o lines.svg -- sh -c $'sleep 0.01\n:' >out 2>err
check "… its title is one line" grep -q '"title":"sh -c sleep 0.01 :"' lines.svg
timeout 60 "$TALLY" export --format speedscope -i waits.data --event offcpu-time -o waits.json >out 2>err
check "exports end stacks there too" grep -q '"nanoseconds"' waits.json
# ---- who wakes whom ------------------------------------------------------------------------------------------------

if timeout 60 "$TALLY" record --off-cpu -o wakers.data -- "$WAKERS" 10 >took 2>err && ! grep -q 'are not recorded' err; then
	timeout 60 "$TALLY" fold --wakers -i wakers.data >folded 2>err
	cat took folded >out
	# WAITER WAKER: nanoseconds that the waiter waited for the waker
	ended() { awk -v waiter="$1" -v waker="$2" '$0 ~ waiter ".*woken by waker.*" waker ";" { sum += $NF } END { print sum + 0 }' folded; }
	for kind in signal:waits_for_signal:gives_signal byte:waits_for_byte:writes_byte lock:waits_for_lock:holds_lock; do
		IFS=: read -r name waiter waker <<<"$kind"
		whole=$(awk -v of="$name" '$1 == of { print $2 }' took) part=$(ended "$waiter" "$waker") any=$(ended "$waiter" '')
		check "$waiter is woken by $waker, after the time that it waited" \
			eval '[ "$part" -le $((whole + 5000000)) ] && [ "$part" -ge $((whole * 9 / 10 - 5000000)) ]'
		check "… and by nothing else" eval '[ $((any - part)) -le $((whole / 50)) ]'
	done
	timeout 60 "$TALLY" report --stdio --wakers -i wakers.data >out 2>err
	check "report --wakers continues trees with the wakers, and says for how much of the time they are known" \
		eval 'grep -q "woken by waker" out && grep -q "^wakers are known for [0-9]*% of the time" out && ! grep -q "try_to_wake_up" out'
	check "… from the command's start to what woke it, in one tree" eval \
		'[ "$(grep -c "^ *[0-9.]*% " out)" -le 2 ] && grep -q "^  TOTAL.*COMMAND$" out'
	check "… for waits only" eval '[ "$(grep -c "samples of" out)" = 1 ]'
	timeout 60 "$TALLY" report --stdio -i wakers.data >out 2>err
	check "without --wakers, wakings are no event of the report, and stacks end in waits" eval '! grep -q "sched_waking\|woken by" out'
	timeout 60 "$TALLY" timeline -i wakers.data >out 2>err
	check "… and a timeline has no marks for them" eval 'grep -q "2 tasks" out && ! grep -q sched_waking out'
	timeout 60 "$TALLY" report --stdio -i wakers.data --event sched:sched_waking >out 2>err
	check "… unless they are selected" grep -q "samples of sched:sched_waking" out
	timeout 60 "$TALLY" report --stdio --wakers --comm wakers --time 0%-100% -i wakers.data >out 2>err
	check "filters select by the waiting task, whichever task wakes it" grep -q "woken by waker" out
	timeout 60 "$TALLY" flamegraph --wakers -i wakers.data -o wakers.svg >out 2>err
	check "a flame graph shows the waker above the waiting task" \
		eval 'grep -q "woken by waker" wakers.svg && grep -q gives_signal wakers.svg && grep -q "^tally flamegraph: wakers are known" err'
	timeout 60 "$TALLY" record --off-cpu --no-wakers -o plain.data -- "$WAKERS" 1 >out 2>err
	timeout 60 "$TALLY" report --stdio --wakers -i plain.data >out 2>err
	exited=$?
	check "a recording without wakers says so" eval '[ "$exited" = 1 ] && grep -q "no recorded wakers" err'
	# A user who may sample the kernel, but not list tracepoints.
	perfmon="$nobody --inh-caps=+perfmon --ambient-caps=+perfmon"
	chmod 755 . && cp -f "$TALLY" ./tally && mkdir -p -m 777 ours
	if [ "$(id -u)" = 0 ] && $perfmon ./tally record -q -e cpu-clock -o ours/probe true 2>err && ! $perfmon ls /sys/kernel/tracing/events >out 2>&1; then
		timeout 60 $perfmon ./tally record --off-cpu -o ours/less.data -- sleep 0.1 >out 2>err
		timeout 60 "$TALLY" report --stdio -i ours/less.data >out 2>&1
		check "without access to tracepoints, waits are recorded, and a message says what is missing" \
			eval 'grep -q "^tally: wakers are not recorded" err && grep -qE "samples? of offcpu-time" out'
	else
		skip "without access to tracepoints, waits are recorded, and a message says what is missing" "needs root, setpriv and CAP_PERFMON"
	fi
	timeout 60 "$TALLY" record -q -a --off-cpu -o all.data -- "$WAITS" >out 2>err
	check "waits of the whole system, and the tasks that end them" [ $? = 0 ]
	# On some virtual machines, only the first wake-up on an idle CPU is recorded, also by perf.
	timeout 60 "$TALLY" fold --wakers --comm waits -i all.data >folded 2>err
	cp folded out
	check "a timer wakes in an interrupt, whatever code it interrupted" \
		eval 'grep "nanosleep" folded | grep -qE "woken by (an interrupt|what was not recorded)" &&
		! grep "nanosleep" folded | grep -q "woken by [^aw]\|cpu_startup_entry"'
else
	skip "wakers" "$(grep -h "are not recorded" err || echo "the kernel refuses")"
fi
if have perf; then
	timeout 60 perf report --stdio -i waits.data >out 2>err
	check "perf reads the recording and counts the switches" grep -q "of event 'offcpu-time'" out
fi
done_testing

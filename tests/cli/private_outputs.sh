#!/bin/bash
# Recordings, and outputs that may hold other users' stacks and names, are for their owner alone.
# TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch
umask 022
tally() { timeout 60 "$TALLY" "$@"; }
busy='i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'

outputs() { # MODE RECORDING: the modes of all outputs of a recording
	rm -f out.*
	tally flamegraph -i "$2" -o out.svg 2>>err && tally fold -i "$2" -o out.folded 2>>err &&
		tally export -f speedscope -i "$2" -o out.json 2>>err && tally timeline -i "$2" -o out.txt 2>>err &&
		tally annotate --html -o out.html -i "$2" >out 2>>err </dev/null || return
	[ "$(stat -c %a out.* | sort -u)" = "$1" ] || { stat -c '%a %n' out.* >out; return 1; }
}
: >err
if ! tally record -q -e cpu-clock -o own.data -- sh -c "$busy" 2>err; then skip_all "$(head -n 1 err)"; fi
check "a recording has the mode 600" test "$(stat -c %a own.data)" = 600
check "outputs of a command's recording follow the umask" outputs 644 own.data
check "… a smaller one, too" eval '(umask 077; outputs 600 own.data)'
sh -c 'while :; do :; done' &
pid=$!
check "outputs of a running process's recording are private" eval \
	'tally record -q -e cpu-clock -o running.data -p $pid --duration 1 2>>err && outputs 600 running.data'
if tally record -q -a -e cpu-clock -o all.data -- sh -c "$busy" 2>err; then
	check "… those of a recording of all processes, too" outputs 600 all.data
	check "… and what is made from them" eval 'tally flamegraph -i out.folded -o again.svg 2>>err && [ "$(stat -c %a again.svg)" = 600 ]'
	check "… also from a pipe" eval 'rm -f piped.svg; tally flamegraph -i - -o piped.svg <all.data 2>>err && [ "$(stat -c %a piped.svg)" = 600 ]'
else
	skip "… those of a recording of all processes, too" "$(head -n 1 err)"
fi
kill $pid 2>/dev/null; wait $pid 2>/dev/null
if [ "$(id -u)" = 0 ]; then
	check "… those of another user's recording, too" eval 'cp own.data theirs.data && chown 12345 theirs.data && outputs 600 theirs.data'
	if tally record -q -e sched:sched_switch -o switches.data -- sh -c 'for i in 1 2 3; do sleep 0.05; done' 2>err; then
		check "… those of a tracepoint's, which names other tasks" outputs 600 switches.data
	else
		skip "… those of a tracepoint's, which names other tasks" "$(head -n 1 err)"
	fi
else
	skip "… those of another user's recording, too" "needs root"
fi
if have perf && perf record -q -e cpu-clock -o perf.data -- sh -c "$busy" >/dev/null 2>&1; then
	check "outputs of perf's recording of a command follow the umask" outputs 644 perf.data
	if perf record -q -a -e cpu-clock -o all.data -- sh -c "$busy" >/dev/null 2>err; then
		check "… and those of all processes are private" outputs 600 all.data
	else
		skip "… and those of all processes are private" "$(head -n 1 err)"
	fi
else
	skip "outputs of perf's recording of a command follow the umask" "needs perf"
fi
check "a private output is private also where it replaces a file that others could read" eval \
	': >replaced.svg; chmod 644 replaced.svg; tally flamegraph -i running.data -o replaced.svg 2>err && [ "$(stat -c %a replaced.svg)" = 600 ]'
check "… and keeps the mode where it is not private" eval \
	': >replaced.svg; chmod 664 replaced.svg; tally flamegraph -i own.data -o replaced.svg 2>err && [ "$(stat -c %a replaced.svg)" = 664 ]'
check "a text's output has no bits that the text lacks" eval \
	'echo "a;b 1" >text && chmod 640 text && tally flamegraph -i text -o text.svg 2>err && [ "$(stat -c %a text.svg)" = 640 ]'
check "flamegraph -- COMMAND follows the umask" eval \
	'tally flamegraph -o now.svg -- sh -c "$busy" 2>err && [ "$(stat -c %a now.svg)" = 644 ]'
check "stat --per-thread names threads of others: its file is private" eval \
	'sleep 20 & tally stat --per-thread -e task-clock -p $! --timeout 50 -o threads.txt 2>err; kill $!; [ "$(stat -c %a threads.txt)" = 600 ]'
check "… unlike a command's counts" eval 'tally stat -e task-clock -o counts.txt true 2>err && [ "$(stat -c %a counts.txt)" = 644 ]'
done_testing

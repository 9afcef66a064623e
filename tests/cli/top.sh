#!/bin/bash
# `tally top` as text: it shows what runs, leaves out what was not requested, and ends when nothing
# is left to show.  TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
workload=
trap '[ -z "$workload" ] || kill $workload 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

top() { timeout 60 "$TALLY" top --stdio "$@" >out 2>err </dev/null; }

cat >spinner.sh <<'S'
while :; do "$WORKLOAD" spin 0.03; done
S
# Many short children: the one that runs when top begins does not appear.
bash spinner.sh >/dev/null 2>&1 &
workload=$!
if ! top -p $workload -n 1 -d 100ms; then
	echo "1..0 # SKIP can't sample: $(head -n 1 err)"
	exit 0
fi

# Prints the function in the first row: the one that takes the program's time.
first() { awk '/SELF/ { getline; print; exit }' out; }
views() { grep -c '^    SELF' out; }
top -u "$(id -u)" -d 500ms -n 2
check "-n 2 shows two views" [ "$(views)" = 2 ]
top -p $workload -d 1 -n 1
check "a process with its children" eval 'first | grep -q "record_workload.* inner"'
check "... for at least half of its time" eval '[ "$(first | sed "s/^ *\([0-9]*\).*/\1/")" -ge 50 ]'
top -p $workload -d 1 -n 1 -K --percent-limit 0 -E 100
check "-K: only user mode" eval 'grep -q inner out && ! grep -q "\[k\]" out'
if top -d 500ms -n 1 -a; then
	check "the whole system" grep -q "the whole system" out
	top -d 500ms -n 1 -U --percent-limit 0 -E 1000
	check "-U: only the kernel" eval '! grep -q " inner$" out'
else
	skip "the whole system" "the kernel refuses"
	skip "-U: only the kernel" "the kernel refuses"
	top -d 200ms -n 1
	check "... by default it shows the user's own processes" eval '[ $? = 0 ]'
fi
"$WORKLOAD" faults 60 & faulter=$!
top -p $faulter -d 300ms -n 1 -e cpu-clock,minor-faults
kill $faulter
check "a list for each event" eval '[ "$(views)" = 2 ] && grep -q "samples of minor-faults" out'
top -p $workload -d 300ms -n 1 -E 2 --percent-limit 0
check "not more rows than requested" eval '[ "$(grep -c "%  " out)" -le 2 ]'

top -p $workload -d 1 -n 1 -g
check "-g has totals" eval 'grep -q "TOTAL *SELF" out && first | grep -q "%.*%.*inner"'

rm -f out
sh -c 'until grep -q SELF out; do sleep 0.05; done' 2>/dev/null & short=$! # runs until the first view appears
top -p $short -d 300ms
check "top ends with the process" eval '[ $? = 0 ] && ! kill -0 $short 2>/dev/null'
SECONDS=0
top -p $workload --duration 700ms -d 10
check "--duration ends top, which shows what it has" eval '[ "$(views)" = 1 ] && [ $SECONDS -lt 8 ]'
timeout -s INT 3 "$TALLY" top --stdio -p $workload -d 20 >out 2>err </dev/null
check "Ctrl-C ends top, which shows what it has" [ "$(views)" = 1 ]
top -p 999999999; check "a missing process is an error" [ $? = 1 ]
top -p $workload ls; check "a command beside running programs is wrong use" [ $? = 2 ]
cat >work.sh <<'S'
echo begun
"$WORKLOAD" spin 0.5
exit 3
S
top -d 200ms -- bash work.sh
ended=$?
check "a command is shown until it ends, with its exit status" eval '[ $ended = 3 ] && grep -qx begun out && grep -q " inner$" out'
SECONDS=0
top -d 200ms --duration 500ms -- sleep 30
ended=$?
check "--duration ends the command" eval '[ $ended = 0 ] && [ $SECONDS -lt 10 ]'
top -- ./not-there
ended=$?
check "a command that isn't there ends with 127" eval '[ $ended = 127 ] && grep -q "no file" err'
top -K -U; check "a target with nothing to show is wrong use" [ $? = 2 ]
"$TALLY" top --tui </dev/null >out 2>err; check "--tui without a terminal is wrong use" [ $? = 2 ]
echo "1..$number"

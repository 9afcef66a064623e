#!/bin/bash
# Signals of a program under the process provider, which uses one of its own in the program: actions, masks, what
# interrupts calls and how long they wait are as without tally.  TAP; $TALLY is the binary, $OWN_SIGNALS the test
# program, $OWN_SIGNALS_STATIC the same as a program that can't be entered.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1

if ! "$TALLY" stat --provider process -o counts -- true >out 2>err; then
	skip_all "this tally has no process provider: $(head -n 1 err)"
fi

stat() { timeout 120 "$TALLY" stat --provider process -o counts -- "$@"; }
record() { timeout 120 "$TALLY" record --provider process -q -F 4000 -o data "${event[@]}" -- "$@"; }
# same HOW ARGUMENT…: the test program prints the same.  On a busy machine, an alarm may come before the call that it
# should end begins, with tally or without: hence three tries.
same() {
	local how=$1 try
	shift
	for try in 1 2 3; do
		timeout 120 "$OWN_SIGNALS" "$@" >plain 2>&1
		"$how" "$OWN_SIGNALS" "$@" >out 2>err && diff plain out >differences && return
		echo "# try $try"
	done
	cat differences >out
	false
}

event=(-e task-clock)
for what in actions masks waits ends mixed; do
	same stat "$what"
	check "$what: counting changes nothing"
	same record "$what"
	check "$what: sampling changes nothing"
done
event=(-e wall-clock)
for what in masks waits ends mixed; do
	same record "$what"
	check "$what: sampling threads that wait changes nothing"
done

same stat children "$OWN_SIGNALS" inherited
check "a program that is executed inherits mask and action"
same stat children "$OWN_SIGNALS_STATIC" kernel
check "a program that is executed and can't be entered does so, too"

# --- no alarm is missed ------------------------------------------------------------------------------------------
for clock in task-clock wall-clock; do
	event=(-e "$clock" -F 8000)
	record "$OWN_SIGNALS" alarms 2000 >out 2>err && [ "$(cat out)" = "2000 of 2000" ]
	check "$clock: each alarm ends a call, also when a sample is taken at that moment"
done
done_testing

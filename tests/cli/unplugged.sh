#!/bin/bash
# A CPU goes offline, really, and comes back while tally records: for a few tenths of a second.  TAP;
# $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
cp "$TALLY" "$scratch/tally" && cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch XDG_CACHE_HOME=$scratch/cache
online=/sys/devices/system/cpu/cpu1/online
[ -w $online ] && [ "$(cat $online)" = 1 ] || skip_all "CPU 1 can't be taken offline here"
trap 'echo 1 >$online; rm -rf "$scratch"' EXIT
has() { grep -qF -- "$1" out; }

./tally record -a -e cpu-clock -F 199 -o run -- sleep 60 >out 2>&1 &
recorder=$!
until [ -s run ]; do kill -0 $recorder 2>&- || skip_all "CPUs can't be recorded here: $(head -1 out)"; sleep 0.02; done
echo 0 >$online && sleep 0.3
echo 1 >$online
for _ in $(seq 100); do ! has 'came online' || break; sleep 0.1; done
kill -TERM $recorder
wait $recorder
[ $? = 143 ] && has 'CPU 1 went offline' && has 'CPU 1 came online' && ./tally script -i run >/dev/null 2>>out
check "a CPU is unplugged while it is recorded: messages say so, and the recording is readable"
./tally stat -a -A -e cpu-clock -- sh -c "echo 0 >$online; sleep 0.3; echo 1 >$online; sleep 0.3" >out 2>&1 && grep -q 'CPU1' out
check "… or counted: its counts are kept"
[ "$(cat $online)" = 1 ]
check "the CPU is online again"
done_testing

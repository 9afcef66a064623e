#!/bin/bash
# A long recording under a fork storm: the recorder's memory must not follow the tasks that come and go.
# $1: seconds; then options of record (-a: the whole machine, whose other programs should be few).
# TAP; $TALLY is the binary, $EXEC_STORM RATE SECONDS PROGRAM… starts programs.
set -u
seconds=$1
shift
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
if ! "$TALLY" record -q -o probe -e cpu-clock true 2>out; then
	echo "1..0 # SKIP cpu-clock can't be sampled: $(head -1 out)"
	exit 0
fi
"$TALLY" record "$@" -F 4000 -e cpu-clock --call-graph dwarf -o soak -- \
	"$EXEC_STORM" 1500 "$seconds" /bin/true /bin/pwd /usr/bin/id /bin/uname >out 2>&1 </dev/null &
recorder=$!
memory() { awk '/RssAnon/ { print $2 }' "/proc/$recorder/status" 2>/dev/null; }
step=$((seconds / 10)); [ "$step" -gt 0 ] || step=1
early='' late=''
for i in 1 2 3 4 5 6 7 8 9; do
	sleep "$step"
	late=$(memory)
	echo "# $((i * step)) s: ${late:-?} KiB"
	[ $i = 3 ] && early=$late
done
wait $recorder && grep -q 'samples in' out
[ $? = 0 ] && echo "ok 1 - the recording ends well" || echo "not ok 1 - the recording ends well"
sed 's/^/# /' out
# Half a MiB is what a heap's fragments come to; 1,500 tasks a second would be that in 2 seconds.
[ -n "$early" ] && [ -n "$late" ] && [ "$late" -le $((early + 512)) ]
[ $? = 0 ] && echo "ok 2 - its memory stays what it was" || echo "not ok 2 - its memory stays what it was: $early KiB, then $late KiB"
"$TALLY" report --stdio --sort comm -i soak >names 2>&1
for name in true pwd id uname; do grep -q "[0-9]%.*$name" names || missing=$name; done
if [ -z "${missing-}" ] && ! grep -q '[0-9]%.* :[0-9]' names; then echo "ok 3 - all of the storm's tasks are named"
else echo "not ok 3 - all of the storm's tasks are named"; sed 's/^/# /' names; fi
echo "1..3"

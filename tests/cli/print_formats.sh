#!/bin/bash
# The text of tracepoints equals perf's, for each print format of this kernel (tracefs; root) and of
# tests/corpus/tracepoint, with random events.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)

if ! have perf || ! have python3; then
	skip_all "needs perf and python3"
fi
cd "$scratch" || exit 1

# FORMAT…
same_text() {
	"$here/print_formats.py" make made.data "$@" &&
		timeout 120 perf script -i made.data -F event,trace >perf.txt 2>perf.err &&
		timeout 120 "$TALLY" script -i made.data -F event,trace >tally.txt 2>tally.err &&
		"$here/print_formats.py" compare perf.txt tally.txt
}

check "the corpus's formats print as in perf" same_text "$here"/../corpus/tracepoint/*.*
[ "$(wc -l <tally.txt)" -gt 500 ]
check "there are events to compare"

# The comparison finds a wrong letter.
sed '7s/.$/x/' tally.txt >wrong.txt
! "$here/print_formats.py" compare perf.txt wrong.txt >out
check "one wrong letter is found"

check "many events of one tracepoint take its format's memory once" "$here/print_formats.py" memory "$TALLY"

# Tests don't change what is mounted: tracefs in a namespace of its own.
cat >kernel.sh <<'END'
[ -d /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing
mkdir formats
cd /sys/kernel/tracing/events || exit 77
for one in */*/format; do
	name=${one%/format}
	cat "$one" >"$2/formats/${name%/*}.${name#*/}"
done
END
unshare -m sh kernel.sh "$here" "$scratch" >mount.out 2>&1
if [ -e formats/sched.sched_switch ]; then
	check "this kernel's formats print as in perf" same_text formats/*
	[ "$(grep -c 'FAILED TO PARSE' tally.txt)" -le "$(($(wc -l <tally.txt) / 100))" ]
	check "at most one in a hundred prints fields alone"
else
	skip "this kernel's formats print as in perf" "tracefs can't be mounted (root may)"
fi
done_testing

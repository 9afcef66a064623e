#!/bin/bash
# perf and tally both read what bench/large_recording makes, so benchmarks compare the same work.
# TAP; $TALLY is the binary, $BENCH the folder of bench's programs.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export NO_COLOR= HOME=$scratch

if ! command -v perf >/dev/null || ! command -v python3 >/dev/null ||
	! perf record -q -F 2000 -e cpu-clock -g -o small.data "$BENCH/bench_stacks" 1 20 >out 2>&1; then
	echo "1..0 # SKIP needs perf, which may record, and python3"
	exit 0
fi
samples() { perf script -F tid -i "$1" 2>/dev/null | grep -c .; }
same() {
	perf script --no-inline -i "$1" >perf.txt 2>/dev/null && "$TALLY" script --no-inline -i "$1" >tally.txt 2>out &&
		"$TALLY" script --records -i "$1" >records.txt 2>out &&
		"$here/compare_script.py" perf.txt tally.txt records.txt >out
}

repeated() {
	"$BENCH/large_recording" repeat small.data repeated.data 3 >out 2>&1 && same repeated.data &&
		[ $(($(stat -c %s repeated.data) / 1000000)) = 3 ] && [ "$(samples repeated.data)" -gt "$(samples small.data)" ]
}
check "the samples are repeated at later times" repeated

# Two independent readers find the same samples and the same period.
stacked() {
	"$BENCH/large_recording" stacks small.data stacks.data 3 >out 2>&1 && same stacks.data &&
		"$BENCH/bench_interning" stacks.data >floor &&
		[ "$(cut -d' ' -f1 floor)" = "$(samples stacks.data)" ] && "$TALLY" fold -i stacks.data >folded &&
		[ "$(awk '{ sum += $NF } END { printf "%.0f", sum }' folded)" = "$(sed 's/.*period //' floor)" ]
}
check "stacks that no program had" stacked

refused() {
	perf record -q -e cpu-clock -o flat.data true >out 2>&1
	! "$BENCH/large_recording" stacks flat.data none.data 1 >out 2>&1 && grep -q 'call chain' out &&
		head -c 5000 small.data >cut.data && ! "$BENCH/large_recording" repeat cut.data none.data 1 >out 2>&1
}
check "a recording without chains, or cut short, is refused" refused

echo "1..$number"

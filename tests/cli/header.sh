#!/bin/bash
# A recording's header: `tally report --header-only` and `tally script --header` print the same
# lines as perf, for all feature sections, and perf shows those that tally record writes.  TAP;
# $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export HOME=$scratch TZ=UTC

if ! command -v perf >/dev/null || ! command -v python3 >/dev/null || ! perf record -q -o perf.data -e cpu-clock true >out 2>&1; then
	echo "1..0 # SKIP needs perf, which may record, and python3"
	exit 0
fi

in_words() { tr ',' '\n' | sed 's/.*: //; s/^ *//' | sort; }

# Compares both commands, short and in full.
same_header() {
	for full in "" -I; do
		for command in report script; do
			timeout 60 perf $command --header-only $full -i "$1" >perf.txt 2>perf.err
			timeout 60 "$TALLY" $command --header-only $full "$1" >tally.txt 2>tally.err || return 1
			diff perf.txt tally.txt >out && [ -s tally.txt ] || return 1
		done
	done
}

for kind in features features_old; do
	"$here/make_recording.py" $kind $kind.data
	check "the same lines as perf: $kind" same_header $kind.data
done
check "each feature has a line" test "$(wc -l <tally.txt)" -gt 40

"$here/make_recording.py" features_unknown unknown.data
"$TALLY" report --header-only unknown.data >out 2>&1
check "a message names an unknown section" grep -q '^# feature section 77, .*: 15 bytes$' out

# Compares without the BPF programs that other tests may have loaded; side_events.sh checks its own.
same_recording() { # WHAT OPTION…
	if timeout 60 perf record --no-bpf-event -q -o perf.data "${@:2}" >out 2>&1; then
		check "the same lines as perf: $1" same_header perf.data
	else
		skip "the same lines as perf: $1" "perf can't record it: $(head -c 100 out | tr '\n#' '  ')"
	fi
}
same_recording "clocks" -e cpu-clock,task-clock -g -- true
same_recording "compressed, another clock" -z -k monotonic -e cpu-clock -- true
same_recording "a group" -e '{cpu-clock,task-clock}:S' -- true
same_recording "cgroups, namespaces" -e cpu-clock --namespaces --all-cgroups -- true

perf record --no-bpf-event -q -o - -e cpu-clock -- true >pipe.data 2>/dev/null
perf report --header-only -i - <pipe.data >perf.txt 2>/dev/null
check "the same lines as perf: a pipe" diff perf.txt <("$TALLY" report --header-only - <pipe.data)
perf script --header -i - <pipe.data 2>/dev/null | grep '^#' >perf.txt
check "the same lines as perf: a pipe, before the samples" diff perf.txt <("$TALLY" script --header - <pipe.data | grep '^#')

# The header that tally record writes.
"$TALLY" record -o tally.data -e cpu-clock -- seq 1 300000 >out 2>&1
check "perf shows a recording of tally's as tally does" same_header tally.data
perf report --header-only -I -i tally.data >out 2>&1
for line in 'hostname : ' 'os release : ' 'arch : ' 'nrcpus online : ' 'total memory : ' 'cmdline : .*record' 'event : name = cpu-clock\(:u\)\?, ' \
	'sibling sockets : ' 'sibling threads : ' 'CPU 0: Core ID ' 'pmu mappings: .*software = 1' 'time of first sample : ' \
	'clockid: monotonic (1)' 'compressed : Zstd'; do
	check "perf shows of a recording of tally's: $line" grep -q "^# $line" out
done
# A process forks while tally attaches to it: each CPU must report the child's mappings before the
# child is sampled anywhere.  The kernel numbers events in the order of opening.
side_band_first() {
	sleep 60 &
	timeout 60 "$TALLY" record -q -o joined.data -e cpu-clock -p $! -- true >out 2>&1
	kill $!
	"$TALLY" report --header-only joined.data >out 2>&1
	sed -n 's/^# event : name = \([a-z]*\).* id = { \([0-9, ]*\) }.*/\1, \2/p' out | awk -F', ' '{ for (i = 2; i <= NF; i++) {
		if ($1 == "dummy" && $i > last) last = $i
		if ($1 == "cpu" && (!first || $i < first)) first = $i } } END { exit !(last && first > last) }'
}
check "the side-band is opened first, on each CPU" side_band_first
# tally finds these in the same places as perf record.
perf record -q -o perf.data -e cpu-clock -- true >out 2>&1
perf report --header-only -I -i perf.data >perf.txt 2>&1
for line in 'node0 cpu list : ' 'CPU cache info:' ' L1 Data ' 'memory nodes (nr ' '  0 \[' 'pmu mappings: '; do
	perf report --header-only -I -i tally.data 2>&1 | grep "^# $line" >out
	check "the same as for perf's recording: $line" diff <(grep "^# $line" perf.txt | in_words) <(in_words <out)
done
echo "1..$number"

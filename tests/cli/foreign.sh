#!/bin/bash
# Recordings of other machines: of the other byte order, as ../foreign/reencode.py writes them.  A re-encoded recording counts
# as one once perf prints it as the one that it was made of; tally must then print it, with all its records, as that one too.
# TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c, $SOURCE the sources.
set -u
number=0
here=$(cd "$(dirname "$0")" && pwd)
reencode="$here/../foreign/reencode.py"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export HOME=$scratch # where perf keeps copies of what it recorded

ok() { number=$((number + 1)); echo "ok $number - $1"; }
not_ok() { number=$((number + 1)); echo "not ok $number - $1"; sed 's/^/# /' out; }
skip() { number=$((number + 1)); echo "ok $number - $1 # SKIP $2"; }
check() { if "${@:2}" >out 2>&1; then ok "$1"; else not_ok "$1"; fi; }
done_testing() { echo "1..$number"; exit 0; }
have() { command -v "$1" >/dev/null 2>&1; }

printed() { timeout 60 "$TALLY" script --stdio --no-inline -i "$1" </dev/null; }
# Where a record is, and raw tracepoint data, are the file's own; pipes have records of their own in front.
records() {
	timeout 60 "$TALLY" script --stdio --records -i "$1" </dev/null |
		sed -E 's/^0x[0-9a-f]+ //; s/ raw\(([0-9]+)\)=[0-9a-f…]*/ raw(\1)/' |
		grep -vE '^(HEADER_|EVENT_UPDATE|COMPRESSED)'
}
perf_prints() { timeout 60 perf script --no-inline -i "$1" </dev/null; }

same_for_perf() { perf_prints "$1" >perf.turned 2>/dev/null && cmp perf.txt perf.turned; }
same_for_tally() {
	printed "$1" >tally.turned && cmp tally.txt tally.turned && records "$1" >records.turned && cmp records.txt records.turned
}
as_perf() {
	timeout 60 "$TALLY" script --stdio --records -i "$1" >all.txt </dev/null
	"$here/compare_script.py" perf.turned tally.turned all.txt
}

# turn NAME FILE: all that is asked for of one recording
turn() {
	perf_prints "$2" >perf.txt 2>/dev/null
	printed "$2" >tally.txt
	records "$2" >records.txt
	python3 "$reencode" "$2" turned 2>out || { not_ok "$1: re-encoding fails"; return; }
	if [ ! -s perf.txt ] || ! same_for_perf turned >out 2>&1; then not_ok "$1: perf reads it differently"; return; fi
	check "$1: big-endian, as it was" same_for_tally turned
	check "$1: big-endian, as perf prints it" as_perf turned
	python3 "$reencode" --pipe "$2" turned
	check "$1: a big-endian pipe" same_for_tally turned
	rm -f turned
}

# compare NAME perf-record-arguments…
compare() {
	name=$1
	shift
	if timeout 60 perf record -q -o perf.data "$@" >record.out 2>&1 </dev/null; then
		turn "$name" perf.data
	else
		skip "$name" "perf can't record it: $(head -c 100 record.out | tr '\n#' '  ')"
	fi
}

if ! have perf || ! have python3 || ! perf record -q -o perf.data -e cpu-clock true >out 2>&1; then
	echo "1..0 # SKIP needs perf, which may record, and python3"
	exit 0
fi

compare "frame pointers" -e cpu-clock -g -F 299 "$WORKLOAD" spin
compare "stack copies" -e cpu-clock --call-graph dwarf,4096 -F 199 "$WORKLOAD" spin
compare "tracepoints" -a -e sched:sched_switch,sched:sched_wakeup,sched:sched_process_exec sh -c 'ls >/dev/null; sleep 0.05'
compare "system calls" -e syscalls:sys_enter_openat,syscalls:sys_exit_openat,raw_syscalls:sys_enter ls -l /usr/share
compare "a group's values" -e '{cpu-clock,page-faults,minor-faults}:S' -F 299 "$WORKLOAD" faults
compare "page faults with their addresses and data sources" -e page-faults -c 1 -d -W "$WORKLOAD" faults 0.005
compare "namespaces, cgroups, switches" --namespaces --all-cgroups --switch-events -e cpu-clock -F 199 "$WORKLOAD" threads
compare "registers" -e cpu-clock --user-regs=ip,sp,bp -I -F 199 "$WORKLOAD" spin
compare "build-ids in map records" --buildid-mmap -e cpu-clock -g -F 299 "$WORKLOAD" spin
compare "counts at a thread's end" -s -e cpu-clock -F 199 "$WORKLOAD" threads
compare "several events" -e task-clock,page-faults,context-switches -g -F 299 "$WORKLOAD" faults

# ---- how else a recording may be encoded ------------------------------------------------------------------
perf record -q -o perf.data -e cpu-clock,page-faults -g -F 299 "$WORKLOAD" faults >out 2>&1
printed perf.data >tally.txt
records perf.data >records.txt
encoded() { python3 "$reencode" "${@:2}" perf.data turned 2>out && check "$1" same_for_tally turned; }
encoded "the features' bits of a 32-bit machine" --words32
encoded "the first format" --first --little
encoded "the first format, big-endian" --first
encoded "a pipe of the first format" --first --little --pipe
encoded "a big-endian pipe of the first format" --first --pipe
if have zstd; then
	encoded "compressed" --compress --little
	encoded "compressed, big-endian" --compress
	encoded "a compressed big-endian pipe" --compress --pipe
else
	skip "compressed" "no zstd"
fi
# What the attribute of an old kernel lacks is zero, and what a later one has is passed over.
for size in 64 72 80 96 104 112 120 128 136 144 200; do
	encoded "attributes of $size bytes" --little --attr-size $size
	encoded "attributes of $size bytes, big-endian" --attr-size $size
	[ $size = 104 ] || [ $size = 200 ] && encoded "attributes of $size bytes, down a big-endian pipe" --attr-size $size --pipe
done
done_testing

#!/bin/bash
# Recordings of a newer perf than 6.1, and tally's recordings for it.
# - Always: recordings that perf 7.3 made (../foreign/perf7); tally must print the samples as it did,
#   without extra blanks.
# - If there is a newer perf ($TALLY_NEW_PERF, or `perf_6.…` or later on the PATH): tally prints its
#   recordings the same, line for line, and it prints tally's the same.
# TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export HOME=$scratch # perf stores copies of recorded files there

check() { if "${@:2}" >out 2>&1; then ok "$1"; else not_ok "$1"; fi; }

# ---- recordings that are here: all of them compressed, in records of a type that perf 6.1 does not know ------
squeezed() { sed -E 's/ +/ /g; s/ $//'; }
as_it_printed() {
	timeout 60 "$TALLY" script --stdio -F -sym,-dso -i "$1.perfdata" 2>warnings | squeezed | diff "$1.txt" - || return 1
	grep 'skipped' warnings && return 1 # it knows everything in there
	grep -q . "$1.txt"
}
for name in compressed calls pipe; do
	check "perf 7.3, $name: the same samples as perf printed" as_it_printed "$here/../foreign/perf7/$name"
done
of_a_pipe() {
	"$TALLY" script --stdio -F -sym,-dso -i - <"$here/../foreign/perf7/pipe.perfdata" 2>/dev/null | squeezed | diff "$here/../foreign/perf7/pipe.txt" -
}
check "perf 7.3, a stream: the same samples through a pipe" of_a_pipe

# Prints times and depths of stacks that come after their samples.
when_and_how_deep() {
	"$TALLY" script --stdio --no-inline -F time,ip -i "$1" 2>/dev/null |
		awk '/^ *[0-9.]+:/ { if (time) printf "%s%d ", time, depth; time = $1; depth = 0; next } NF { depth++ } END { print time depth }'
}
stacks_that_came() {
	"$here/make_recording.py" "$1" later.data || return 1
	when_and_how_deep later.data | diff - <(echo "$2")
}
if command -v python3 >/dev/null; then
	check "stacks that are recorded after their samples" stacks_that_came deferred "0.000004:2 0.000002:5 0.000003:3 0.000005:1"
	check "stacks that are never recorded" stacks_that_came deferred_lost "0.000004:2 0.000002:5 0.000003:3 0.000005:1 0.000006:1 0.000009:1"
else
	skip "stacks that are recorded after their samples" "no python3"
fi

# ---- beside it -----------------------------------------------------------------------------------------------
newer_perf() {
	local path
	[ -n "${TALLY_NEW_PERF:-}" ] && echo "$TALLY_NEW_PERF" && return
	for path in $(compgen -c | grep -E '^perf_(6\.[2-9]|6\.[1-9][0-9]|[7-9]\.)' | sort -rV); do
		command -v "$path" && return
	done
}
new=$(newer_perf)
if [ -z "$new" ]; then
	skip "comparison with a newer perf" "there is none: TALLY_NEW_PERF=PATH, or perf_6.12 on the PATH"
	done_testing
elif [ "$(id -u)" != 0 ]; then
	skip "comparison with a newer perf" "needs root: what others may record differs from kernel to kernel"
	done_testing
elif ! command -v python3 >/dev/null || ! "$new" record -q -o try.data -e cpu-clock true >out 2>&1; then
	skip "comparison with a newer perf" "needs python3, and that $new may record: $(head -c 100 out | tr '\n#' '  ')"
	done_testing
fi
echo "# $("$new" --version)"

# perf 7.3 pads thread ids in another way.  In stacks it shows addresses in memory; 6.1 shows places
# in files.  The last three digits are the same.
alike() {
	sed -E 's/^( *\S.*[^ ]) +([0-9]+(\/[0-9]+)?) (\[[0-9]+\] )? *([0-9]+\.[0-9]+: )/\1 \2 \4\5/; s/^\t *[0-9a-f]*([0-9a-f]{3}) (.*)$/\t\1 \2/' "$1"
}
# tally keeps the name of a task that has ended.
without_ended() { grep -vE '^ *:[0-9]+ ' "$1" | cat; }
same() { # FILE
	timeout 60 "$new" script --no-inline -i "$1" >perf.txt 2>perf.err </dev/null
	timeout 60 "$TALLY" script --stdio --no-inline -i "$1" >tally.txt 2>tally.err </dev/null || { cat tally.err; return 1; }
	timeout 60 "$TALLY" script --stdio --records -i "$1" >records.txt 2>/dev/null </dev/null
	cat tally.err
	grep 'skipped' tally.err && return 1
	alike perf.txt >perf.alike
	alike tally.txt >tally.alike
	"$here/compare_script.py" perf.alike tally.alike records.txt
}
recorded_by_it() { # NAME OPTIONS…
	if timeout 60 "$new" record -q -o perf.data "${@:2}" >out 2>&1 </dev/null; then
		check "recorded by the newer perf: $1" same perf.data
	else
		skip "recorded by the newer perf: $1" "it can't: $(head -c 100 out | tr '\n#' '  ')"
	fi
}
recorded_by_it "leaves" -e cpu-clock -F 299 "$WORKLOAD" spin
recorded_by_it "frame pointers" -e cpu-clock -g -F 299 "$WORKLOAD" spin
recorded_by_it "stack copies" -e cpu-clock --call-graph dwarf,4096 -F 199 "$WORKLOAD" spin
recorded_by_it "compressed" -z -e cpu-clock -g -F 999 "$WORKLOAD" spin
recorded_by_it "deferred stacks, where the kernel has them" -e cpu-clock --call-graph fp,defer -F 999 "$WORKLOAD" spin
# perf does not say which code of the kernel it is; tally asks this machine's kernel.
deferred_alike() {
	"$here/make_recording.py" deferred later.data || return 1
	"$new" script --no-inline -i later.data 2>/dev/null >perf.txt
	"$TALLY" script --stdio --no-inline -i later.data 2>/dev/null >tally.txt
	diff <(alike perf.txt | sed -E 's/ +/ /g; s/^\t([12]00) .*/\1/') <(alike tally.txt | sed -E 's/ +/ /g; s/^\t([12]00) .*/\1/') &&
		grep -q CALLCHAIN_DEFERRED <("$new" script -D -i later.data 2>/dev/null)
}
if "$here/make_recording.py" deferred later.data && "$new" script --no-inline -i later.data 2>/dev/null | grep -q '0.000005:'; then
	check "stacks recorded after their samples: the same as in the newer perf" deferred_alike
else
	skip "stacks recorded after their samples: the same as in the newer perf" "this perf does not know them"
fi
recorded_by_it "system calls" -e syscalls:sys_enter_openat,raw_syscalls:sys_enter true
recorded_by_it "a group's values" -e '{cpu-clock,page-faults,minor-faults}:S' -F 299 "$WORKLOAD" faults
recorded_by_it "page faults with their addresses" -e page-faults -c 1 -d -W "$WORKLOAD" faults 0.005
recorded_by_it "namespaces, cgroups, switches" --namespaces --all-cgroups --switch-events -e cpu-clock -F 199 "$WORKLOAD" threads
recorded_by_it "registers" -e cpu-clock --user-regs=ip,sp,bp -I -F 199 "$WORKLOAD" spin
recorded_by_it "build-ids in map records" --buildid-mmap -e cpu-clock -g -F 299 "$WORKLOAD" spin
recorded_by_it "counts at a thread's end" -s -e cpu-clock -F 199 "$WORKLOAD" threads
recorded_by_it "several events" -e task-clock,page-faults,context-switches -g -F 299 "$WORKLOAD" faults

piped() {
	timeout 60 "$new" record -q "$@" -o - -e cpu-clock -g -F 299 "$WORKLOAD" spin >pipe.data 2>out </dev/null || return 1
	"$new" script --no-inline -i - <pipe.data 2>perf.err >perf.txt
	"$TALLY" script --stdio --no-inline -i - <pipe.data 2>tally.err >tally.txt
	"$TALLY" script --stdio --records -i - <pipe.data 2>/dev/null >records.txt
	cat tally.err
	grep 'skipped' tally.err && return 1
	alike perf.txt >perf.alike
	alike tally.txt >tally.alike
	"$here/compare_script.py" perf.alike tally.alike records.txt
}
check "through its pipe" piped
check "through its pipe, compressed" piped -z

events_alike() {
	timeout 60 "$new" record -q -o perf.data --namespaces --all-cgroups --switch-events -e cpu-clock -F 199 "$WORKLOAD" threads >out 2>&1 </dev/null || return 1
	for kind in task mmap switch namespace cgroup; do
		"$new" script --show-$kind-events -i perf.data >perf.txt 2>/dev/null
		"$TALLY" script --stdio --show-$kind-events -i perf.data >tally.txt 2>/dev/null
		alike perf.txt >perf.alike
		alike tally.txt >tally.alike
		echo "$kind" && diff <(without_ended perf.alike) <(without_ended tally.alike) || return 1
	done
}
check "the kernel's other records" events_alike

# It has newer names for an event's type and number; 6.1 prints nothing about BPF if there is none.
header_alike() {
	for full in "" -I; do
		"$new" script --header-only $full -i "$1" 2>/dev/null | sed -E 's/(type = [0-9]+|config = [0-9a-fx]+) \([A-Za-z_]*\)/\1/g; s/, config = 0,/,/' |
			grep -vE '^# (bpf_prog_info|btf info) empty' >perf.txt
		"$TALLY" script --stdio --header-only $full -i "$1" >tally.txt 2>/dev/null
		diff perf.txt tally.txt && [ -s tally.txt ] || return 1
	done
}
"$new" record -q -o perf.data -e cpu-clock "$WORKLOAD" spin >out 2>&1 </dev/null
check "the recording's metadata" header_alike perf.data
"$here/make_recording.py" features_newer newer.data
if "$new" script --header-only -i newer.data 2>/dev/null | grep -q cacheline; then
	check "domains, the machine's number, its cache lines" header_alike newer.data
else
	skip "domains, the machine's number, its cache lines" "this perf does not know them either"
fi

recorded_by_tally() { # NAME OPTIONS…
	if timeout 60 "$TALLY" record -q -o tally.data "${@:2}" >out 2>&1 </dev/null; then
		check "recorded by tally: $1" same tally.data
	else
		skip "recorded by tally: $1" "it can't: $(head -c 100 out | tr '\n#' '  ')"
	fi
}
recorded_by_tally "leaves" -e cpu-clock -F 299 "$WORKLOAD" spin
recorded_by_tally "frame pointers" -e cpu-clock --call-graph fp -F 299 "$WORKLOAD" spin
recorded_by_tally "unwound stacks" -e cpu-clock --call-graph dwarf -F 299 "$WORKLOAD" spin
recorded_by_tally "stack copies" -e cpu-clock --call-graph dwarf --keep-stacks -F 299 "$WORKLOAD" spin
recorded_by_tally "tracepoints" -e sched:sched_switch,raw_syscalls:sys_enter "$WORKLOAD" threads
recorded_by_tally "a group's values" -e '{cpu-clock,page-faults}:S' -F 299 "$WORKLOAD" faults
recorded_by_tally "namespaces, cgroups, switches" --namespaces --all-cgroups --switch-events -e cpu-clock -F 199 "$WORKLOAD" threads
recorded_by_tally "not compressed" -z 0 -e cpu-clock -d "$WORKLOAD" threads
fields_of_tallys() {
	for fields in comm,tid,cpu,time,event,period ip,sym,symoff,dso pid,tid,time,event,ip,sym; do
		"$new" script --no-inline -F $fields -i tally.data >perf.txt 2>perf.err
		"$TALLY" script --stdio --no-inline -F $fields -i tally.data >tally.txt 2>/dev/null
		diff <(alike perf.txt | squeezed | sed "s/^ //") <(alike tally.txt | squeezed | sed "s/^ //") && [ -s tally.txt ] || return 1
	done
}
"$TALLY" record -q -o tally.data -e cpu-clock -F 299 "$WORKLOAD" spin >out 2>&1 </dev/null
check "fields of a recording of tally's" fields_of_tallys
reports_tallys() {
	"$new" report --stdio -i tally.data >out 2>&1 </dev/null || return 1
	cat out
	! grep -iE 'incompatible|unknown|failed' out && grep -q 'inner' out
}
check "the newer perf reports a recording of tally's that has a section of names" reports_tallys
done_testing

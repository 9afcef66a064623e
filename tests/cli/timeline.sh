#!/bin/bash
# `tally timeline`: when each task ran, compared with the programs' own measurements.  TAP; $TALLY
# is the binary, $SHARES a program that uses CPU time.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 NO_COLOR=1

finish() { echo "1..$number"; exit; }
timeline() { "$TALLY" timeline "$@" >out 2>errors; }
own=shares.$$ # other tests may run shares during a recording of the whole system
cp "$SHARES" "$own"

"$(dirname "$0")/make_recording.py" idle idle >out 2>&1 || cat out >&2
idle() { ! timeline -i idle "$@" && grep -q 'only the idle task ran' errors && grep -q '^hint: .*report --sort comm,cpu' errors; }
check "a recording of only the idle task is reported as that" idle -C 0
check "… also if the idle task is selected" idle --comm swapper
check "… if other tasks ran, they are drawn" eval 'timeline -i idle && grep -q "^worker" out && grep -q "10 samples of the idle task are not drawn" errors'
check "… nor if another task is selected" eval '! timeline -i idle --comm nobody && grep -q "passes the filters" errors'

# Samples of a counter, each after a fixed number of events.  Their times show when a task ran, and
# the times between them how long.
"$(dirname "$0")/make_recording.py" counted counted >out 2>&1 || cat out >&2
check "samples of a counter with a fixed period are drawn" timeline -i counted
check "… as long as the distance between them" eval 'grep -qE "^steady .* 0\.099 s" out && grep -qE "^pauses .* 0\.039 s" out'
check "… a task's only sample as long as is usual" grep -qE "^once .* 0\.001 s" out
"$(dirname "$0")/make_recording.py" counted_once counted >out 2>&1 || cat out >&2
check "a single sample is drawn as a mark" eval 'timeline -i counted && grep -q "cycles" out'

if have perf && perf record -q -e page-faults -c 1 -o without-cpus true >out 2>&1; then
	check "if samples have no CPU, the output does not say that none was used" eval \
		'timeline -i without-cpus && grep -q "^[0-9.]* s of [0-9]* tasks*, by events$" out'
else
	skip "if samples have no CPU, the output does not say that none was used" "perf can't record here"
fi

# Prints the seconds that the machine's own host has taken since: programs don't count them,
# timelines do.
held() { awk -v before="$1" '/^cpu / { print $9 / 100 - before }' /proc/stat; }
before=$(held 0)
# Samples each fault, so that each task has a sample.
if ! "$TALLY" record -q --switch-events -e task-clock,page-faults/period=1,name=page-faults/ -o switches -- \
	sh -c "./$own 200; sleep 0.3; ./$own 200 2" >measured 2>out; then
	skip "timeline" "no recording here: $(head -1 out)"
	finish
fi

# The first program ran for 0.2 s, the second for 0.2 s in each of two threads.  The figures may
# be lower by a tenth and 10 ms, or higher by a tenth and 50 ms.
seconds_of() { awk -v name="$1" '$1 == name && $NF == "s" { sum += $(NF - 1) } END { print sum + 0 }' out; }
about() { awk -v found="$1" -v wanted="$2" -v held="$(held "$before")" \
	'BEGIN { exit !(found > 0.9 * wanted - 0.01 - held && found < 1.1 * wanted + 0.05 + held) }'; }
measures() {
	timeline -i switches -n 100 && grep -q 'by its context switches$' out && about "$(seconds_of "$own")" 0.6
}
check "tasks ran as long as they measured themselves" measures
cpus() { grep -cE '^CPU [0-9]+ .* [0-9.]+ %$' out | grep -qvx 0 && grep -qE '^  page-faults(:u)? .* [0-9]+ x$' out; }
check "CPUs show their load, and page faults have marks" cpus
gap() { # the shell slept and nothing ran: the middle of the first second
	timeline -i switches --by task --width 134 && ! grep -q '^CPU' out &&
		[ "$(grep "^$own" out | cut -c23-122 | tr -d ' ' | wc -m)" -gt 10 ] &&
		grep "^$own" out | grep -q '   '
}
check "time in which no task ran is blank" gap
width() { timeline -i switches -w 80 && [ "$(wc -L <out)" -le 80 ]; }
check "no line is wider than requested" width
axis() { # for any time span
	local share
	for share in 100 80 64 51 41 33 26 21 17; do
		timeline -i switches -w 70 --time "0%-$share%" && [ "$(sed -n 3p out | grep -o ╷ | wc -l)" -ge 2 ] || return 1
	done
}
check "an axis has at least two marks" axis
ascii() { LC_ALL=C timeline -i switches && ! grep -qP '[^\x00-\x7f]' out; }
check "in an ASCII locale all characters are ASCII" ascii
limited() { timeline switches -n 1 --by task && [ "$(grep -cE '^[a-z].* s$' out)" = 1 ] && grep -q 'tasks more; -n shows them' out; }
check "-n selects the tasks that ran longest, and options may follow the file" limited
only() { timeline -i switches --comm sh --by task && grep -q '^sh ' out && ! grep -q "^$own" out; }
check "--comm shows only this command" only
# same OPTION RECORDING: rows of the remaining tasks are exactly those of a view of all tasks
rows() { grep -E '^[^ ].* [0-9.]+ s$' out | awk '{ print $1, $2, $(NF - 1) }'; }
same() { # each whole process that ran shares, or the task that ran longest
	local option=$1 recording=$2
	timeline -i "$recording" -n 1000 --by task && rows >every && grep "^$own " every >wanted || return
	case $option in
	--comm) set -- "$own" ;;
	--tid) set -- "$(awk 'NR == 1 { print $2 }' wanted)" && grep " $1 " every >wanted ;;
	--pid)
		"$TALLY" script -i "$recording" --comm "$own" -F pid,tid 2>errors | tr -d ' ' | sort -u >tasks
		# shellcheck disable=SC2046 # words
		set -- $(cut -d/ -f1 tasks | sort -u) ;;
	esac
	[ $# -gt 0 ] || return
	for one; do
		[ $option != --pid ] || awk -F'[/ ]' -v pid="$one" 'NR == FNR { of[$2] = $1; next } of[$2] == pid' tasks every >wanted
		[ -s wanted ] && timeline -i "$recording" -n 1000 --by task $option "$one" && rows | diff wanted - || return
	done
}
for option in --comm --tid --pid; do
	check "$option selects tasks and does not change their times" same $option switches
done

trace() {
	"$TALLY" timeline -i switches -o trace.json 2>out && python3 - "$own" "$(held "$before")" >out 2>&1 <<'END'
import json, sys
events = json.load(open("trace.json"))["traceEvents"]
ran = [e for e in events if e["ph"] == "X"]
cpus = [e for e in ran if e["pid"] == 0]
assert ran and len(cpus) * 2 == len(ran), "each interval stands on a CPU's track and on a task's"
for track in {e["tid"] for e in cpus}:
    ends = 0
    for e in sorted((e for e in cpus if e["tid"] == track), key=lambda e: e["ts"]):
        assert e["ts"] >= ends - 1e-3, "one task at a time on a CPU"
        ends = e["ts"] + e["dur"]
assert 0.5e6 < sum(e["dur"] for e in cpus if e["name"].startswith(sys.argv[1] + " ")) < 0.75e6 + 1e6 * float(sys.argv[2])
assert any(e["ph"] == "i" and e["name"].startswith("page-faults") for e in events)
names = {e["args"]["name"] for e in events if e["ph"] == "M"}
assert {"CPUs", sys.argv[1]} <= names and any(name.startswith("CPU ") for name in names), names
END
}
check "trace events: one task at a time on each CPU" trace

if "$TALLY" record -q -a -e sched:sched_switch -o sched -- "./$own" 200 >measured 2>out; then
	switched() { timeline -i sched -n 100 && grep -q 'by sched:sched_switch$' out && about "$(seconds_of "$own")" 0.2; }
	check "the tracepoint sched:sched_switch gives the same" switched
	for option in --comm --tid --pid; do
		check "$option works with sched:sched_switch, whose records belong to the previous task" same $option sched
	done
else
	skip "the tracepoint sched:sched_switch gives the same, also filtered" "it can't be recorded here"
fi
"$TALLY" record -q -e cpu-clock -F 999 -o samples -- "./$own" 200 >measured 2>out
sampled() { timeline -i samples && grep -q 'by samples: ' out && about "$(seconds_of "$own")" 0.2; }
check "without switches, the timeline is made from samples, and a line says so" sampled
"$TALLY" record -q -e cpu-clock -F 999 --call-graph dwarf,256 -o cut -- python3 -c 'sum(range(3000000))' >out 2>&1
if "$TALLY" script --stdio -i cut 2>&1 >out | grep -q 'are incomplete'; then
	stackless() { timeline -i cut && ! grep 'are incomplete' errors; }
	check "it does not tell of cut stacks, since it shows no stacks" stackless
else
	skip "it does not tell of cut stacks, since it shows no stacks" "none was cut"
fi

"$TALLY" record -q -e cpu-clock -F 1 -o few -- true >out 2>&1
empty() { ! timeline -i few && grep -q 'the recording has no samples' errors; }
check "a recording without samples is reported as that" empty
passes_nothing() {
	! timeline -i samples --comm nobody && grep -q 'passes the filters' errors && grep -q "commands are $own[;,]" errors
}
check "filters that select nothing are reported as that" passes_nothing
unprinted() {
	"$TALLY" script --stdio few >out 2>errors && [ ! -s out ] && grep -q 'the recording has no samples' errors &&
		"$TALLY" script --stdio samples --comm nobody >out 2>errors && [ ! -s out ] && grep -q 'passes the filters' errors
}
check "script reports both too" unprinted

kinds() {
	timeline -i samples -o t.svg; [ $? = 2 ] && grep -q "t.svg.*a .json file" errors && [ ! -e t.svg ] &&
		timeline -i samples -o t.txt && grep -q 'wrote t.txt' errors && grep -q ' by samples: ' t.txt
}
check "a name with another format's ending is refused; the written file is reported" kinds

printf 'nothing' >none
refused() { timeline -i none; [ $? = 1 ] && timeline --by row; [ $? = 2 ] && grep -q 'cpu, task, both' errors; }
check "a file that is no recording, and a wrong option, are refused" refused
finish

#!/bin/bash
# The kernel's other records: names, namespaces, cgroups, code that it makes, as perf script
# --show-…-events prints them.  Samples in such code get the name that was valid at their time.
# TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export HOME=$scratch

if ! command -v perf >/dev/null || ! command -v python3 >/dev/null || ! perf record -q -o perf.data -e cpu-clock true >out 2>&1; then
	echo "1..0 # SKIP needs perf, which may record, and python3"
	exit 0
fi

# An unknown address has no object in perf, and belongs to the kernel in tally.
places() { sed 's/\[unknown\] (.*/[unknown]/'; }
same() {
	timeout 60 perf script --no-inline "${@:2}" -i "$1" 2>perf.err | places >perf.txt
	timeout 60 "$TALLY" script --no-inline "${@:2}" "$1" 2>tally.err | places >tally.txt
	diff perf.txt tally.txt >out && grep -q PERF_RECORD tally.txt
}
all=(--show-task-events --show-mmap-events --show-switch-events --show-namespace-events --show-cgroup-events --show-bpf-events
	--show-lost-events --show-text-poke-events)
# The same without samples; other tests compare their places.
same_events() {
	same "$@"
	grep -P 'PERF_RECORD|^\t\t' perf.txt >perf.events
	grep -P 'PERF_RECORD|^\t\t' tally.txt >tally.events
	diff perf.events tally.events >out && [ -s tally.events ]
}

"$here/make_recording.py" side_events side.data
check "every kind of record, as perf prints it" same side.data "${all[@]}"
for option in "${all[@]}"; do
	check "only $option" same side.data "$option"
done
for fields in comm,time time,event,ip +misc misc,pid,cpu -comm ip,sym trace:comm; do
	check "-F $fields applies to their heads too" same_events side.data -F $fields "${all[@]}"
done
check "… and --deltatime counts from the line before, of whatever kind" same_events side.data --deltatime --ns "${all[@]}"
"$TALLY" script side.data 2>/dev/null | grep -v PERF_RECORD | grep -o ' bpf_prog_[^ ]*\| ftrace_[^ ]*\| \[unknown\]' >out
check "code has the name that was valid at the time" test "$(tr -d '\n' <out)" = \
	" [unknown] bpf_prog_0123456789abcdef_first+0x10 [unknown] ftrace_trampoline_x+0x20"

"$here/make_recording.py" cgroups cgroups.data
perf report --stdio --sort cgroup -i cgroups.data 2>/dev/null | sed -n 's/^ *\([0-9.]*%\)  *\(.*[^ ]\) *$/\1 \2/p' | sed 's/ unknown.*/ unknown/' >perf.txt
"$TALLY" report --sort cgroup --percent-limit 0 cgroups.data 2>/dev/null |
	sed -n 's/^ *\([0-9.]*%\)  *\(.*[^ ]\) *$/\1 \2/p' | sed 's/ unknown.*/ unknown/' >tally.txt
diff perf.txt tally.txt >out
check "a report by cgroup" test "$(wc -l <tally.txt)" = 4 -a ! -s out
check "… as JSON" grep -q '"cgroup": "/web.slice/a b"' <("$TALLY" report -j --sort cgroup cgroups.data)

# Real recordings.
perf record -q -o perf.data -e cpu-clock -- sh -c 'true; ls >/dev/null' >out 2>&1
check "tasks and maps, recorded" same_events perf.data --show-task-events --show-mmap-events
perf record -q -o perf.data --switch-events -e cpu-clock -g -- sh -c 'true; ls >/dev/null; sleep 0.01' >out 2>&1
for fields in +misc comm,tid,time -ip; do
	check "… with switches, by -F $fields" same_events perf.data -F $fields --show-task-events --show-mmap-events --show-switch-events
done
perf record -q -o perf.data -e cpu-clock -- sh -c 'true; ls >/dev/null' >out 2>&1
if perf record -q -o perf.data --namespaces --all-cgroups -e cpu-clock -- unshare -u sh -c 'true; ls >/dev/null' >out 2>&1; then
	check "namespaces and cgroups, recorded" same_events perf.data --show-namespace-events --show-cgroup-events
else
	skip "namespaces and cgroups, recorded" "perf can't record them"
fi

# By cgroup namespace: the command's, and one that it makes.
by_namespace() { sed -n 's/^ *\([0-9.]*%\)  *\([0-9]*\/0x[0-9a-f]*\) *$/\1 \2/p' | sort; } # both may have equal shares
if perf record -q -o perf.data --namespaces -e cpu-clock -F 1999 -- sh -c '"$0" 200; unshare -C "$0" 200' "$SHARES" >out 2>&1; then
	perf report --stdio --sort cgroup_id -i perf.data 2>/dev/null | by_namespace >perf.txt
	"$TALLY" report --sort cgroup_id --percent-limit 0 perf.data 2>/dev/null | by_namespace >tally.txt
	diff perf.txt tally.txt >out
	check "a report by cgroup namespace" test "$(wc -l <tally.txt)" = 2 -a ! -s out
else
	skip "a report by cgroup namespace" "perf can't record it, or no such namespace can be made"
fi

# Namespaces and cgroups from before the recording, of a process that sleeps meanwhile.  This shell
# starts perf and tally, in its namespaces.  Cgroups of other tests come and go.
around() { perf script -i "$1" --show-namespace-events --show-cgroup-events 2>/dev/null |
	grep -A 2 "PERF_RECORD_NAMESPACES $sleeper/$sleeper \|PERF_RECORD_CGROUP" | grep -o 'PERF_RECORD_.*\|^\t.*' | grep -v tally-test- | sort; }
sleep 60 & sleeper=$!
if perf record -q -o perf.data --namespaces --all-cgroups -e cpu-clock -p $sleeper -- true >out 2>&1; then
	"$TALLY" record -q -o tally.data --namespaces --all-cgroups -e cpu-clock -p $sleeper --duration 200ms >out 2>&1
	around perf.data >perf.txt
	around tally.data >tally.txt
	diff perf.txt tally.txt >out
	check "recorded by tally: namespaces and cgroups that existed before, as in perf" \
		test "$(grep -c 'NAMESPACES\|nr_namespaces' tally.txt)" = 1 -a ! -s out
	"$TALLY" record -q -o next.data --switch-output=100ms --namespaces --all-cgroups -e cpu-clock -p $sleeper --duration 500ms >out 2>&1
	wrong=0
	for file in next.data.*; do
		around "$file" >one.txt
		diff tally.txt one.txt >out || wrong=1
	done
	check "… in each file of a switched output" test $wrong = 0
else
	skip "recorded by tally: namespaces and cgroups that existed before, as in perf" "perf can't record them"
	skip "… in each file of a switched output" "likewise"
fi
kill $sleeper 2>/dev/null
# One run of this test at a time: -a records the BPF programs of another run, too.
exec 9<"$(command -v perf)"
flock -w 120 9
if perf record -q -a -o perf.data -e cpu-clock -- "$BPF_PROGRAM" >out 2>&1; then
	check "a BPF program, recorded" same_events perf.data --show-bpf-events
	check "… with its name" grep -q 'PERF_RECORD_KSYMBOL .*_for_tally$' tally.txt
	"$TALLY" report --header-only perf.data >tally.txt 2>out
	check "… and its description in the header, as in perf's" diff <(perf report --header-only -i perf.data 2>/dev/null) tally.txt
else
	skip "a BPF program, recorded" "needs perf record -a and bpf(2)"
fi
# The program's functions, with their types' names.
inner() { grep -o 'bpf_prog_[0-9a-f]*_inner_of_tally' "$1" | sort -u; }
if perf record -q -a -o perf.data -e cpu-clock -F 1999 -- "$BPF_FUNCTIONS" >out 2>&1; then
	perf report --stdio -i perf.data >perf.txt 2>/dev/null
	timeout 60 "$TALLY" report --stdio --percent-limit 0 -i perf.data >tally.txt 2>/dev/null
	inner perf.txt >out
	check "a BPF program's functions are named as perf names them" test -n "$(inner perf.txt)" -a "$(inner perf.txt)" = "$(inner tally.txt)"
	check "… and its description in the header" diff <(perf report --header-only -i perf.data 2>/dev/null) <("$TALLY" report --header-only perf.data 2>/dev/null)
	busy() { : >loaded; "$BPF_FUNCTIONS" 60000 >loaded & busy=$!; for ((i = 0; i < 200; i++)); do [ -s loaded ] && break; sleep 0.05; done; }
	# Records that the program exists.
	bpf_events() {
		perf script -i "$1" --show-bpf-events 2>/dev/null | grep -o ' PERF_RECORD_\(KSYMBOL .*flags 0x0\|BPF_EVENT type 1\).*' |
			awk '/KSYMBOL/ { own = /_of_tally$/ } own'
	}
	busy
	timeout 60 perf record -q -a -o perf.data -e cpu-clock -F 99 -- true >out 2>&1
	timeout 60 "$TALLY" record -q -a -o before.data -e cpu-clock -F 1999 -- sh -c "sleep 0.5; kill $busy; sleep 0.3" >out 2>&1
	timeout 60 "$TALLY" report --stdio --percent-limit 0 -i before.data >tally.txt 2>>out
	check "… also if it was loaded before the recording and removed before its end" test "$(inner perf.txt)" = "$(inner tally.txt)"
	diff <(bpf_events perf.data) <(bpf_events before.data) >out
	check "… with the same records as perf writes about it" test "$(bpf_events perf.data | wc -l)" = 3 -a ! -s out
	perf report --stdio -i before.data >perf.txt 2>/dev/null
	check "… and perf reads tally's" test "$(inner perf.txt)" = "$(inner tally.txt)"
	busy
	timeout 60 "$TALLY" record -q -a -o files.data --switch-output=200ms -e cpu-clock -F 99 --duration 500ms >out 2>&1
	for file in files.data.*; do bpf_events "$file" | grep -c 'KSYMBOL .*_inner_of_tally'; done >out
	check "… in each file of a switched output" test "$(sort -u out)" = 1
	timeout 60 "$TALLY" record -q -a -o none.data --no-bpf-event -e cpu-clock -F 99 -- true >out 2>&1
	bpf_events none.data >out
	check "… but not with --no-bpf-event" test ! -s out
	if setpriv --bounding-set -sys_admin,-bpf true 2>/dev/null; then
		timeout 60 setpriv --bounding-set -sys_admin,-bpf --inh-caps -sys_admin,-bpf "$TALLY" record -q -a -o less.data -e cpu-clock \
			-F 1999 -- sh -c "sleep 0.5; kill $busy; sleep 0.3" >out 2>&1
		timeout 60 "$TALLY" report --stdio --percent-limit 0 -i less.data >tally.txt 2>>out
		check "… from kallsyms, if bpf(2) is refused" test "$(inner perf.txt)" = "$(inner tally.txt)"
	else
		skip "… from kallsyms, if bpf(2) is refused" "setpriv can't take capabilities away"
	fi
	kill $busy 2>/dev/null
else
	skip "a BPF program's functions are named as perf names them" "needs perf record -a and bpf(2)"
	for what in "also when it was there before the recording, and gone before its end" "in the records that perf writes of it" \
		"which perf reads" "in each file of a switched output" "but not with --no-bpf-event" "by kallsyms, where bpf(2) is refused"; do
		skip "… $what" "likewise"
	done
fi
echo "1..$number"

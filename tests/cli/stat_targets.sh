#!/bin/bash
# Which tasks `tally stat` counts, and when: by CPU, core, thread, cgroup; with a delay, by
# --control.  TAP; $TALLY is the binary.  If there is a perf, its rows are the reference.
set -u
. "$(dirname "$0")/tap.sh"
trap 'rm -rf "$scratch"; [ -z "${cgroup-}" ] || rmdir "$cgroup"' EXIT
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8
tally=$TALLY

run() { expected=$1; shift; "$@" >out 2>&1 </dev/null; status=$?; [ "$status" = "$expected" ] || { echo "status $status" >>out; false; }; }
has() { grep -qF -- "$1" out; }
lacks() { ! grep -qF -- "$1" out; }
json() { python3 -c '
import json,sys
docs=[json.loads(l) for l in open("out") if l.startswith("{")]
d=docs[-1]; e=d["events"]
sys.exit(not eval("(" + sys.argv[1] + ")"))' "$1"; }

may_all=no; $tally stat -a -j -e context-switches true 2>out && grep -q '"source":"kernel"' out && may_all=yes
has_perf=no; perf stat -x, -e task-clock true >out 2>&1 && has_perf=yes

# --- wrong use ----------------------------------------------------------------------------------------------------
run 2 $tally stat -A true && has '-a or -C'
check "-A with a command: the message says what it needs"
run 2 $tally stat --per-thread true && has '-p, -t or -a'
check "--per-thread with a command: the message says what it needs"
run 2 $tally stat -A --per-core -a true && has 'exclude each other'
check "two ways to split counts exclude each other"
run 2 $tally stat -e task-clock -G x true && has 'add -a or -C'
check "-G with a command: the message says what it needs"
run 2 $tally stat -D -1 true && has '--control'
check "-D -1 without --control is refused, since it would never count"
# perf accepts the part of a list that it understands (0 of 0- and 0,,1), and says little if that is
# nothing.
for list in , 0- 1-0 99999 0,,1 0x0 0-1-1 a '' ' '; do
	for command in stat record top script report annotate timeline flamegraph fold export diff; do
		run 2 $tally $command -C "$list" && grep -q 'is no list of CPUs like 0-3,7: expected\|the list of CPUs is empty' out || break
	done
	check "each command refuses -C '$list' in the same words"
done
run 2 $tally stat -D soon true && has 'milliseconds'
check "--delay takes only a number"
run 2 $tally stat --control carrier:pigeon true && has 'fifo:CTL'
check "--control takes a FIFO or a descriptor"
run 2 $tally stat --summary true && has 'need -I'
check "--summary without intervals is wrong use"
run 1 $tally stat -e task-clock --control fifo:nowhere true && has 'mkfifo nowhere'
check "for a missing FIFO, the message says how to make it"

# --- parts --------------------------------------------------------------------------------------------------------
# Rows in perf's form: part, number of CPUs, unit, event.
perf_rows() { perf stat -x, "$@" 2>&1 >/dev/null </dev/null | grep -v '^#' | awk -F, -v w="$columns" '{ r = ""; n = split(w, c, " "); for (i = 1; i <= n; i++) r = r $c[i] ","; print r }'; }
tally_rows() { $tally stat -x, "$@" 2>&1 >/dev/null </dev/null | grep -v '^#' | awk -F, -v w="$columns" '{ r = ""; n = split(w, c, " "); for (i = 1; i <= n; i++) r = r $c[i] ","; print r }'; }
compare() { # NAME COLUMNS ARGUMENTS…
	title=$1; columns=$2; shift 2
	if [ $may_all = no ] || [ $has_perf = no ]; then skip "$title" "needs the right to count CPUs, and perf"; return; fi
	perf_rows "$@" >perfs; tally_rows "$@" >tallys
	[ -s tallys ] && diff perfs tallys >out
	check "$title"
}
events='-e cpu-clock,context-switches'
compare "-A has perf's rows" '1 3 4' -a -A $events sleep 0.05
compare "--per-core has perf's rows" '1 2 4 5' -a --per-core $events sleep 0.05
compare "--per-die has perf's rows" '1 2 4 5' -a --per-die $events sleep 0.05
compare "--per-socket has perf's rows" '1 2 4 5' -a --per-socket $events sleep 0.05
compare "--per-node has perf's rows" '1 2 4 5' -a --per-node $events sleep 0.05
compare "-C takes CPUs out" '1 3 4' -C 0 -A $events sleep 0.05
compare "-C '0,' is -C 0" '1 3 4' -C 0, -A $events sleep 0.05
compare "with -r, too" '1 2 4 5' -a --per-core -r 2 $events sleep 0.05
compare "-I -A has perf's rows" '2 4 5' -a -A -I 100 --interval-count 2 $events sleep 5

if [ $may_all = yes ]; then
	cpus=$(getconf _NPROCESSORS_ONLN)
	run 0 $tally stat -a -A -j -e cpu-clock sleep 0.1 &&
		json "len(e) == $cpus and e[0]['cpu'] == '0' and all(0.05e9 < x['value'] < 5e9 for x in e)"
	check "each CPU has its own clock"
	run 0 $tally stat -a --per-socket -j -e cpu-clock sleep 0.1 &&
		json "sum(x['aggregate-number'] for x in e) == $cpus and e[0]['socket'][0] == 'S'"
	check "each part shows its number of CPUs"
	run 0 $tally stat -a -A -I 50 --summary -j -e context-switches sleep 0.4 && json "
		len(docs) >= 4 and d['interval_end_ns'] is None and
		all(d['events'][cpu]['raw'] == sum(i['events'][cpu]['raw'] for i in docs[:-1]) for cpu in range($cpus))"
	check "--summary is the sum of the intervals, for each part"
	run 0 $tally stat -a -x, -I 50 --interval-count 2 --summary -e context-switches && [ "$(grep -c '^summary,' out)" = 1 ]
	check "a summary in CSV is marked as one"
	run 0 $tally stat -a --per-core -e cpu-clock sleep 0.05 && grep -qE '^S[0-9]+-D[0-9]+-C[0-9]+ +[0-9]+ +[0-9.]+ msec  cpu-clock' out
	check "the table has the part and its CPUs before the count"
	run 0 $tally stat -a --no-zero -e dummy,cpu-clock sleep 0.05 && lacks dummy && has cpu-clock
	check "--no-zero leaves out rows that counted nothing"
	run 0 $tally stat --per-thread -j -e task-clock --timeout 200 && json "len(e) >= 1 and
		e == sorted(e, key = lambda x: -x['value']) and all(x['value'] > 0 for x in e)"
	check "--per-thread by itself shows all threads that ran, the largest count first"
else
	for name in "each CPU's clock is its own" "a part says how many CPUs it is of" \
		"--summary is the sum of the intervals, for each part" "a summary in CSV is called so" \
		"the table has parts and their CPUs ahead of the count" "--no-zero leaves out what counted nothing" \
		"--per-thread alone is of all threads that did anything, the largest first"; do
		skip "$name" "needs the right to count CPUs"
	done
fi

# --- cgroups ------------------------------------------------------------------------------------------------------
mount=$(awk '$3 == "cgroup" && $4 ~ /perf_event/ { print $2; exit }' /proc/mounts)
[ -n "$mount" ] || mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
if [ $may_all = yes ] && [ -n "$mount" ] && mkdir "$mount/tally-test-$$" 2>/dev/null; then
	cgroup=$mount/tally-test-$$
	name=${cgroup##*/}
	compare "-G has perf's rows" '2 3 4' -a $events -G $name,/ sleep 0.05
	compare "one cgroup is for all events" '2 3 4' -a $events -G $name sleep 0.05
	compare "an empty name is no cgroup" '2 3 4' -a $events -G ,$name sleep 0.05
	compare "--for-each-cgroup has perf's rows" '2 3 4' -a $events --for-each-cgroup $name,/ sleep 0.05
	compare "--for-each-cgroup ahead of its events has perf's rows" '2 3 4' -a --for-each-cgroup $name,/ $events -e cpu-clock sleep 0.05
	run 0 $tally stat -a -x, --for-each-cgroup $name --for-each-cgroup / -e cpu-clock -e dummy true &&
		[ "$(grep -cE ",(cpu-clock|dummy),$name," out) $(grep -cE ',(cpu-clock|dummy),/,' out)" = "2 2" ]
	check "two lists of cgroups are joined, and apply to all events"
	run 2 $tally stat -a -e cpu-clock --for-each-cgroup / -G / true && has "exclude each other"
	check "-G and --for-each-cgroup exclude each other"
	run 2 $tally stat -a -G $name -e cpu-clock true && has 'no events were named before'
	check "-G before its events is wrong use"
	compare "cgroups by CPU have perf's rows" '1 3 4 5' -a -A $events -G $name sleep 0.05
	mkfifo start
	sh -c "echo \$\$ >$cgroup/cgroup.procs; read go <start; i=0; while [ \$i -lt 30000 ]; do i=\$((i + 1)); done" &
	worker=$!
	run 0 $tally stat -a -j -e cpu-clock,cpu-clock -G $name, sh -c 'echo go >start; sleep 0.3' &&
		json "e[0]['cgroup'] == '$name' and 1e6 < e[0]['value'] < e[1]['value'] and 'cgroup' not in e[1]"
	check "only tasks in the cgroup are counted"
	wait $worker
	run 1 $tally stat -a -e cpu-clock -G no-such-cgroup true && has 'no-such-cgroup' && has 'find'
	check "the message for a missing cgroup says where to look"
	run 2 $tally stat -a -e cpu-clock -G $name,$name true && has 'more cgroups than events'
	check "more cgroups than events are wrong use"
	rmdir "$cgroup"; cgroup=
else
	for name in "-G has perf's rows" "one cgroup is for all events" "an empty name is no cgroup" \
		"--for-each-cgroup has perf's rows" "--for-each-cgroup ahead of its events has perf's rows" \
		"two lists of cgroups are one, and hold for all events" "-G and --for-each-cgroup exclude each other" \
		"-G ahead of its events is wrong use" "cgroups by CPU have perf's rows" \
		"what runs in a cgroup is counted there, and no other" \
		"a cgroup that is not there is told, with where to look" "more cgroups than events are wrong use"; do
		skip "$name" "needs the right to count CPUs and to make cgroups"
	done
fi

# --- when ---------------------------------------------------------------------------------------------------------
begin=$(date +%s%N)
run 0 $tally stat -j -D 200 -e task-clock sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; sleep 0.4' &&
	json "e[0]['state'] == 'counted' and d['elapsed_ns'] < $(($(date +%s%N) - begin)) - 0.19e9"
check "after the delay, counts and times begin"
run 0 $tally stat -j -D 5000 -e task-clock true && json "e[0]['value'] in (None, 0)"
check "a command that ends within the delay is not counted"

mkfifo ctl ack
exec 7<>ack
acknowledged() { IFS= read -r -t 10 line <&7 && [ "${line#?????}" != x ]; }
order() { echo "$1" >ctl; acknowledged; }
$tally stat -j -D -1 --control fifo:ctl,ack -e page-faults -- "$tally" stat --help >help 2>out &
wait $!
json "e[0]['state'] != 'counted' or e[0]['value'] == 0"
check "with events disabled at the start, nothing is counted"

mkfifo go1 go2 go3 done1 done2
sh -c 'read a <go1; i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; echo >done1; read a <go2;
	i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo >done2; read a <go3' &
worker=$!
$tally stat -j -D -1 --control fifo:ctl,ack -e task-clock -p $worker 2>out &
stat=$!
order ping && order 'enable task-clock' && echo >go1 && read -r -t 20 a <done1; order disable && echo >go2 && read -r -t 60 a <done2
order evlist && echo 'fly away' >ctl && order 'disable no-such' && order stop
answered=$?
wait $stat
[ $? = 0 ] && [ $answered = 0 ] && json "0 < e[0]['value'] < 3e9" && grep -qx task-clock out && has "unknown command 'fly away'" && has "no event 'no-such'"
check "--control enables, disables, lists, answers each valid command, and stops"
# The second period is ten times the first, and must not be counted.
counted=$(python3 -c 'import json; print(int([json.loads(l) for l in open("out") if l[0] == "{"][0]["events"][0]["value"]))')
used=$(awk '{ print ($14 + $15) * 10000000 }' /proc/$worker/stat)
[ "$counted" -lt $((used / 2)) ] || { echo "counted $counted of $used" >out; false; }
check "nothing is counted while disabled"
echo >go3
wait $worker

exec 5<>ctl
run 143 $tally stat -e task-clock --control fd:5 sh -c 'echo stop >&5; sleep 20' || run 0 $tally stat -e task-clock --control fd:5 sh -c 'echo stop >&5; sleep 20'
check "--control accepts a descriptor, and the command itself may stop the count"
exec 5>&-

echo "1..$number"

#!/bin/bash
# `tally record` under load: 1,000 threads, a storm of programs, CPUs that go offline and return.
# TAP; $TALLY is the binary, $CROWD threads N CALLS ROUNDS has N threads "t0" …, $CROWD storm N
# PROGRAM… starts programs.
set -u
. "$(dirname "$0")/tap.sh"
cp "$TALLY" "$scratch/tally" && cp "$CROWD" "$scratch/crowd" || exit 1
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch PERF_CONFIG=/dev/null

has() { grep -qF -- "$1" out; }
has_perf=no; perf record -q -o probe -e cpu-clock true >out 2>&1 && has_perf=yes

if ! ./tally record -q -o probe -e cpu-clock true 2>out; then
	echo "1..0 # SKIP cpu-clock can't be sampled: $(head -1 out)"
	exit 0
fi

# --- 1,000 threads -----------------------------------------------------------------------------------------------
# threads FILE: each of the crowd's threads has samples, under its own name
# fields PROGRAM FILE: prints of each sample the thread, the time, c and the CPU, and the command,
# which may have spaces; an ended thread is -1
fields() { "$1" script -i "$2" 2>>out | sed -nE 's/^ *(\S.*) +(-?[0-9]+) +(\[0*([0-9]+)\] +)?([0-9]+\.[0-9]+): .*/\2 \5 c\4 \1/p'; }
cat >threads.py <<'P'
import sys
seen = {}
for line in sys.stdin:
    thread, _, _, name = line.split(None, 3)
    name = name.strip()
    if name != "crowd": # its name before it sets its own
        seen.setdefault(thread, set()).add(name)
names = sorted(name for each in seen.values() for name in each)
print(len(seen), "threads,", len(names), "names")
sys.exit(names != sorted("t%d" % i for i in range(1000)) or len(seen) != 1000)
P
threads() { fields "$1" "$2" | python3 threads.py >>out; }
lossless() { ! has 'were lost'; }
work=(1000 20000) # some ms of user-mode CPU time each, which any user may sample: several samples
graph=(); [ "$(id -u)" = 0 ] || graph=(--call-graph fp) # no stack copies: an ordinary user's rings are too small
if [ "$(ulimit -Hn)" -lt 5000 ]; then
	skip "1,000 threads that exist are all sampled, each under its name" "too few descriptors: $(ulimit -Hn)"
else
	mkfifo hold said ctl ack
	exec 7<>ack
	./crowd threads 1000 "${work[@]}" <hold >said &
	crowd=$!
	exec 8>hold
	read -r -t 20 line <said
	timeout 60 ./tally record -m 32M -e cpu-clock -F 999 "${graph[@]}" --control fifo:ctl,ack -o there -p $crowd 8>&- >out 2>&1 &
	recorder=$!
	echo ping >ctl
	IFS= read -r -t 60 line <&7
	exec 8>&-
	wait $crowd
	wait $recorder && lossless && threads ./tally there
	check "1,000 threads that exist are all sampled, each under its name"
fi
timeout 60 ./tally record -m 32M -e cpu-clock -F 999 "${graph[@]}" -o started -- ./crowd threads 1000 "${work[@]}" </dev/null >out 2>&1 && lossless && threads ./tally started
check "1,000 threads that a program starts are all sampled, each under its name"
if [ $has_perf = yes ]; then
	timeout 60 perf record -q -e cpu-clock -F 999 -o perfs -- ./crowd threads 1000 "${work[@]}" </dev/null >out 2>&1 && threads perf perfs
	ours=$(fields ./tally started | wc -l) theirs=$(fields perf perfs | wc -l)
	echo "$ours samples, perf has $theirs" >>out
	threads perf started && [ "$(fields perf started | wc -l)" = "$ours" ] && [ $((ours * 2)) -gt "$theirs" ] && [ $((theirs * 2)) -gt "$ours" ]
	check "perf reads the same samples, and records about as many itself"
else
	skip "perf reads the same samples, and records about as many itself" "no perf"
fi

# Busy programs don't keep the recorder from its rings, if it has the permission; the command itself
# is unchanged.
if chrt -f 1 true 2>/dev/null; then
	timeout 60 ./tally record -q -e cpu-clock -o turn -- sh -c 'chrt -p $PPID; chrt -p $$' >out 2>&1
	[ "$(grep -c SCHED_FIFO out)" = 1 ] && sed -n '1!p' out | grep -q SCHED_OTHER
	check "the recorder has a real-time priority; its command has not"
else
	skip "the recorder has a real-time priority; its command has not" "no real-time priorities here"
fi

# --- 1,500 programs ----------------------------------------------------------------------------------------------
cat >shares.py <<'P'
import re, sys
def read(path):
    rows = {}
    for line in open(path):
        found = re.match(r"\s*(?:[\d.]+%\s+)?([\d.]+)%\s+(.*\S)", line)
        if found:
            # tally distinguishes functions of one name: main (cc1), check_match (dl-lookup.c)
            name = re.sub(r"^\[[.k]\] | \([^()]*\)$| \[k\]$", "", found[2])
            rows[name] = rows.get(name, 0) + float(found[1])
    return rows
ours, theirs, tolerance = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
top = sorted(theirs, key=theirs.get)[-15:]
bad = [(name, ours.get(name), theirs[name]) for name in top if abs(ours.get(name, 0) - theirs[name]) > tolerance]
print(len(ours), "rows, perf", len(theirs), "differ:", bad)
sys.exit(bool(bad) or not ours or not theirs)
P
programs="/bin/true /bin/pwd /usr/bin/id"
timeout 60 ./tally record -e cpu-clock -F 4999 -o storm -- ./crowd storm 1500 $programs 2>out >printed && lossless
check "a thousand short programs are recorded without losses"
fields ./tally storm | cut -d' ' -f4- | sed 's/ *$//' | sort -u >names
cp names out
[ "$(tr '\n' ' ' <names)" = "crowd id pwd true " ]
check "each of these processes has its name"
# same_shares FILE LIMIT: perf's top programs, files and functions of FILE have the same shares in
# storm, within LIMIT points
same_shares() {
	local sort same=0
	for sort in comm dso sym; do
		./tally report --stdio --percent-limit 0 --no-inline --sort $sort -i storm >ours 2>/dev/null
		perf report --stdio -q --no-children -g none --sort $sort -i "$1" >theirs 2>/dev/null
		python3 shares.py ours theirs "$2" >>out || { same=1; echo "differs by $sort" >>out; }
	done
	return $same
}
if [ $has_perf = yes ]; then
	same_shares storm 0.1
	check "perf finds the same programs, files and functions in the recording"
	# A program that asks for the CPU's features waits for the hypervisor, sometimes long: then
	# runs of one program differ more.
	for try in 1 2 3; do
		timeout 60 perf record -q -e cpu-clock -F 4999 -o perfs -- ./crowd storm 1500 $programs 2>out >printed
		[ $try = 1 ] || timeout 60 ./tally record -q -e cpu-clock -F 4999 -o storm -- ./crowd storm 1500 $programs 2>>out >printed
		same_shares perfs 12 && break
	done
	check "shares agree with perf's own recording as two runs of perf do"
else
	skip "perf finds the same programs, files and functions in the recording" "no perf"
	skip "shares agree with perf's own recording as two runs of perf do" "no perf"
fi

# --- CPUs come and go --------------------------------------------------------------------------------------------
# No CPU really goes offline: this process sees another list of online CPUs.
cat >hotplug.sh <<'H'
cat /sys/devices/system/cpu/online >all
echo 0 >first
cat all >online
mount --bind online /sys/devices/system/cpu/online || exit 77
exec ./tally record -a -e cpu-clock -F 999 -o hotplug -- sh -c '
	until grep -q began out; do sleep 0.1; done; cat first >online
	until grep -q "went offline" out; do sleep 0.1; done; cat all >online
	until grep -q "came online" out; do sleep 0.1; done
	taskset -c 1 timeout 1 sh -c "while :; do :; done"; true' # an idle CPU has few samples
H
(echo began; timeout 60 unshare -m bash hotplug.sh 2>&1) >out
status=$?
if [ "$(nproc)" = 1 ] || [ $status = 77 ] || has unshare; then
	skip "a CPU that goes offline and online again is recorded again" "no list of CPUs can be made up"
else
	[ $status = 0 ] && has 'CPU 1 went offline: nothing is sampled there until it is back' && has 'CPU 1 came online: it is sampled from now on'
	check "messages say that a CPU went offline and came back"
	# Prints the samples of the last second, by CPU: of events that were opened again.
	last() { fields "$1" hotplug | awk '{ cpu[NR] = substr($3, 2); time[NR] = $2 }
		END { for (i = 1; i <= NR; i++) if (time[i] > time[NR] - 0.9) n[cpu[i] + 0]++; print NR, n[0] + 0, n[1] + 0 }'; }
	read -r all first second < <(last ./tally)
	echo "samples: $all, in the end $first and $second" >>out
	[ "$all" = "$(sed -n 's/^tally: \([0-9,]*\) samples in .*/\1/p' out | tr -d ,)" ] && [ "$second" -gt 300 ]
	check "it is recorded again"
	[ $has_perf = no ] || [ "$(last perf)" = "$all $first $second" ]
	check "perf reads all samples of it, under the event's name"
fi
echo "1..$number"

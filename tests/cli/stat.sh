#!/bin/bash
# SPEC G2, B8, E7.  TAP; $TALLY is the binary; $REFUSE_PERF runs it under a seccomp filter;
# $GETPPID_LOOP N makes N getppid calls.
set -u
. "$(dirname "$0")/tap.sh"
chmod 755 "$scratch"
for program in "$TALLY" "$REFUSE_PERF" "$GETPPID_LOOP"; do
	cp "$program" "$scratch/" && chmod 755 "$scratch/${program##*/}"
done
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8

# run EXPECTED_STATUS command…: stdout and stderr go to ./out
run() { expected=$1; shift; "$@" >out 2>&1; status=$?; [ "$status" = "$expected" ] || { echo "status $status" >>out; false; }; }
has() { grep -qF -- "$1" out; }
lacks() { ! grep -qF -- "$1" out; }
# json EXPRESSION over the documents (d: the last, docs: every one, e: d's events by name)
json() { python3 -c '
import json,sys
docs=[json.loads(l) for l in open("out") if l.startswith("{")]
d=docs[-1]; e={x["name"]:x for x in d["events"]}
sys.exit(not eval(sys.argv[1]))' "$1"; }

is_root=no; [ "$(id -u)" = 0 ] && $nobody true 2>/dev/null && is_root=yes
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo none)
perf_works=no; ./tally stat -j -e task-clock true 2>out && grep -q '"source":"kernel"' out && perf_works=yes

run 0 ./tally stat --help && has '--repeat' && has '--provider' && lacks 'scripted'
check "the help lists all options, and no provider for tests"

# --- times that need no counter ----------------------------------------------------------------------------------
times=duration_time,user_time,system_time
same="e['duration_time']['value'] == d['elapsed_ns'] and e['user_time']['value'] == d['user_ns'] and e['system_time']['value'] == d['system_ns']"
spin='i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'
run 0 ./tally stat -j -e $times sh -c "$spin" && json "$same and all(x['unit'] == 'ns' and x['state'] == 'counted' for x in e.values())"
check "duration_time, user_time and system_time are the times shown below the counts"
run 0 ./tally stat -j -r 3 -e $times sh -c "$spin" && json "$same and d['runs'] == 3 and e['duration_time']['sigma'] is not None"
check "with several runs, their means"
run 0 ./tally stat -x, -e duration_time,user_time true && grep -Eq '^([0-9]+),ns,duration_time,\1,100.00,,,clock,$' out && grep -Eq '^([0-9]+),ns,user_time,\1,[0-9.]+,,,wait4,$' out
check "in CSV they are in ns, as in perf"
run 0 ./tally stat -j -I 20 --summary -e $times sh -c 'sleep 0.05' && json "($same and all(x['state'] == 'not-counted' for i in docs[:-1] for x in i['events'] if x['name'] != 'duration_time') and
	sum(x['value'] for i in docs[:-1] for x in i['events'] if x['name'] == 'duration_time') == d['elapsed_ns'])"
check "intervals add up to the whole; a command's CPU times are known at its end"
run 0 ./tally stat -j -e '{duration_time,page-faults},duration_time:u' true && json "len(e) == 3 and e['duration_time']['value'] == e['duration_time:u']['value']"
check "they may be in groups and have modifiers"
run 0 ./tally stat -j -e user_time -p $$ --timeout 20 && json "e['user_time']['state'] == 'counted' and e['user_time']['source'] == '/proc'"
check "for running processes, CPU times come from /proc"
run 2 ./tally record -e duration_time true && has 'tally stat' && has '^'
check "they can't be recorded"

# --- exit statuses -----------------------------------------------------------------------------------------------
run 3 ./tally stat sh -c 'exit 3' && has task-clock && has elapsed
check "the command's exit status is passed on"
run 143 ./tally stat sh -c 'kill -TERM $$' && has 'signal 15' && has task-clock
check "a signal gives 128 + n, and the counts"
run 127 ./tally stat no-such-command-anywhere && has "there is no command 'no-such-command-anywhere'" && lacks task-clock
check "a command that is not found gives 127 and no table"
mkdir -m 600 closed
as=; [ $is_root = no ] || as=$nobody # root may enter any folder
PATH=$scratch/closed:$PATH run 127 $as ./tally stat no-such-command-anywhere && has "there is no command 'no-such-command-anywhere'"
check "... also if a folder of PATH may not be searched"
echo 'echo hello' >plain; chmod 644 plain
run 126 ./tally stat ./plain && has 'no permission to execute' && lacks task-clock
check "a file that is not executable gives 126 and no table"
printf '#!/no/such/interpreter\n' >lost; chmod 755 lost
run 127 ./tally stat ./lost && has 'interpreter'
check "a missing interpreter is named as such"
run 3 ./tally stat -r 3 sh -c 'exit 3'
check "-r returns the command's exit status"
run 2 ./tally stat --filter 'a == 1' true && has 'must follow the -e' && run 2 ./tally stat -e cs --filter 'a == 1' true && has 'is not a tracepoint'
check "a filter applies to the tracepoints of its -e"
run 2 ./tally stat --metric-only true && has "-j has each event's metrics"
check "--metric-only is refused, with what to use instead"
run 2 ./tally stat -r 0 true
check "-r 0 is wrong use"
run 2 ./tally stat -e
check "-e without events is wrong use"
run 2 ./tally stat -e no-such-event true && has "no-such-event" && has '^'
check "the message for an unknown event points at it"
run 1 ./tally stat -p 999999999 && has 'process 999999999'
check "a process that is not there is an error"
run 1 ./tally stat -C 0,4095 true && has 'there is no CPU 4095 online'
check "a CPU that is not there is an error"
run 1 ./tally stat -p 1 -a && has "can't be counted together"
check "processes together with CPUs are refused"
run 0 ./tally stat -- sh -c 'echo "$1"' sh -x && has -x
check "-- ends the options"

# --- signals -----------------------------------------------------------------------------------------------------
cat >terminal.py <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv("./tally", ["./tally", "stat", "--", "sh", "-c", "echo ready; exec sleep 100"])
seen = b""
sent = False
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    seen += data
    if b"ready" in seen and not sent:
        os.write(fd, b"\x03")
        sent = True
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(status)
print(seen.decode())
sys.exit(not (status == 130 and b"task-clock" in seen))
PY
run 0 python3 terminal.py
check "Ctrl-C ends the command and prints the counts so far"

cat >heading.py <<'PY'
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    os.execv("./tally", ["./tally"] + sys.argv[1:])
seen = b""
sent = False
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    seen += data
    if b"until Ctrl-C" in seen and not sent:
        os.write(fd, b"\x03")
        sent = True
os.waitpid(pid, 0)
print(seen.decode().replace("\r", ""))
PY
long=$(printf 'word-%.0s' $(seq 40))
run 0 env NO_COLOR=1 python3 heading.py stat -r 2 echo "$long" && grep -qE "^ Counts of 'echo word-.*…, mean ± σ of 2 runs$" out &&
	[ "$(grep 'Counts of' out | wc -m)" = 61 ]
check "on a terminal, a long command line is shortened"
run 0 ./tally stat sh -c : "$long" "$long" "$long" && has "$long $long $long'"
check "elsewhere, a long command line is printed whole"
run 0 python3 heading.py stat && has 'counting the whole system until Ctrl-C' && has elapsed && run 0 ./tally stat --duration 0.02 && lacks Ctrl-C
check "on a terminal, a target that ends only with Ctrl-C gets a line that says so"
# The pipe is full, so the signal arrives during the write of the line: there is no earlier Ctrl-C.
cat >earliest.py <<'PY'
import fcntl, os, signal, subprocess, sys
reader, writer = os.pipe()
fcntl.fcntl(writer, 1031, 4096)  # F_SETPIPE_SZ
os.write(writer, b" " * fcntl.fcntl(writer, 1032))
tally = subprocess.Popen(["./tally", "stat", "-e", "page-faults"], stderr=writer, restore_signals=False)
os.close(writer)
while tally.poll() is None and open(f"/proc/{tally.pid}/syscall").read().split()[1:2] != ["0x2"]:
    os.sched_yield()
tally.send_signal(signal.SIGINT)
seen = open(reader, "rb").read().decode().strip()
print(seen, tally.wait())
sys.exit(tally.returncode < 0 or not seen.startswith("counting the whole system until Ctrl-C") or "page-faults" not in seen)
PY
run 0 python3 earliest.py
check "after that line Ctrl-C prints the counts, wherever standard error goes"
timeout -s INT 2 ./tally stat -x, -e page-faults >out 2>&1
lacks 'until Ctrl-C'
check "but the line is not printed among -x's"

mkfifo ready
./tally stat -- sh -c 'trap "exit 9" TERM; echo >ready; while :; do sleep 0.05; done' >out 2>&1 &
pid=$!
read -r _ <ready
kill -TERM $pid
wait $pid
[ $? = 9 ] && has task-clock
check "SIGTERM to tally reaches the command"

./tally stat -r 3 -j -e task-clock -- sh -c '[ -e third ] && echo >ready && exec sleep 100; [ -e second ] && : >third; : >second' >out 2>&1 &
pid=$!
read -r _ <ready
kill -TERM $pid
wait $pid
[ $? = 143 ] && json 'd["runs"] == 2 and d["interrupted"] and d["elapsed_ns"] < 1e9'
check "a run that was interrupted is left out of the mean"

./tally stat -o counts -I 20 -a & # the line of an interval shows that it counts
pid=$!
until [ -s counts ]; do sleep 0.01; done
kill -INT $pid
wait $pid
status=$?
cp counts out
[ $status = 0 ] && has cpu-clock
check "SIGINT ends a system-wide count with status 0, also in the background"

run 0 ./tally stat --timeout 50 sleep 100 && has task-clock && has 'stopped at the requested limit'
check "--timeout ends the command, and the exit status is 0"
run 0 ./tally stat -I 20 --interval-count 2 sleep 100 && run 0 ./tally stat --help && has '--interval-count gives 0'
check "--interval-count ends the command, and the exit status is 0"
run 137 ./tally stat --duration 20s sh -c 'kill -KILL $$' && run 9 ./tally stat --timeout 500 sh -c 'trap "exit 9" TERM; while :; do sleep 0.01; done'
check "other ends keep their status, also with a limit"
run 0 ./tally stat -a --duration 0.05 && has 'the whole system'
check "--duration ends a system-wide count"

run 1 ./tally stat -e page-faults -o /dev/full true && has 'to /dev/full failed: No space left' && has 'page-faults'
check "counts that can't be written to the file are shown, with the reason"

# --- runs, intervals, formats ------------------------------------------------------------------------------------
run 0 ./tally stat -r 4 -j -e task-clock true &&
	json 'd["runs"] == 4 and e["task-clock"]["sigma"] > 0 and d["elapsed_sigma_ns"] > 0 and d["user_sigma_ns"] + d["system_sigma_ns"] > 0'
check "-r gives mean and sigma"
run 0 ./tally stat -r 3 true && has '±' && has 'mean ± σ of 3 runs'
check "-r shows the spread"

run 0 ./tally stat -I 20 -j -e task-clock sh -c 'sleep 0.3' &&
	json 'len(docs) >= 2 and [x["interval_end_ns"] for x in docs] == sorted(x["interval_end_ns"] for x in docs)' &&
	json 'docs[0]["interval_end_ns"] >= 2e7 and sum(x["elapsed_ns"] for x in docs) - d["interval_end_ns"] < 1e6'
check "-I gives intervals with their times"
run 0 ./tally stat -I 20 --interval-count 2 -j -a -e cpu-clock && json 'len(docs) == 2'
check "--interval-count ends the count"
run 0 ./tally stat -I 20 sleep 0.3 && grep -q '^# *seconds ' out && [ "$(grep -c '^ .*task-clock' out)" -ge 2 ]
check "-I prints a row per interval, below a heading that is a comment, as in perf"

run 0 ./tally stat -x, -e task-clock,page-faults true && lacks '#' && python3 -c '
import csv
rows=list(csv.reader(open("out")))
assert [len(r) for r in rows] == [9, 9], rows
assert rows[0][1:3] == ["msec", "task-clock"] and float(rows[0][0]) > 0, rows
assert rows[1][2].split(":")[0] == "page-faults", rows'
check "-x gives CSV, without a comment"
run 0 ./tally stat -x, --header -e task-clock true && [ "$(head -1 out)" = '# tally-stat-csv 1: value,unit,event,running-ns,running-percent,metric,metric-unit,source,note' ] &&
	[ "$(wc -l <out)" = 2 ] && run 2 ./tally stat --header true && has '--header needs -x'
check "--header begins it with the names of the columns"
run 0 ./tally stat -x, --header -I 20 --interval-count 2 -a -e cpu-clock && has '1: seconds,value,' &&
	[ "$(grep -cE '^[0-9]+\.[0-9]{9},([0-9.]+|<withheld>),msec,cpu-clock,' out)" = 2 ]
check "-x with -I begins with the time"
run 0 ./tally stat -x, --header -r 2 -e task-clock true && has ',event,sigma-percent,running-ns' && grep -qE '^[0-9.]+,msec,task-clock,[0-9.]+,[0-9]+,100.00,' out
check "-x with -r has the spread in perf's column"
run 0 ./tally stat -x';' -e task-clock true && has ';msec;task-clock;'
check "-x takes any separator"
run 0 ./tally stat -j true && json 'd["schema"] == "tally-stat" and d["version"] == 1 and d["exit_status"] == 0' &&
	json 'all(x["value"] is None for x in d["events"] if x["state"] != "counted")'
check "-j gives JSON, with null for missing values"
for locale in de_DE.UTF-8 C; do LC_ALL=$locale ./tally stat -x, -e task-clock true 2>out; done
grep -q '^[0-9]*\.[0-9]*,msec' out
check "numbers have the format of the C locale"

run 0 ./tally stat -o file echo hello && [ "$(cat out)" = hello ] && cp file out && has task-clock &&
	./tally stat -o file --append true && [ "$(grep -c elapsed file)" = 2 ]
check "-o writes to a file, --append adds"
run 1 ./tally stat -o /no/such/dir/file true && has '/no/such/dir/file'
check "a file that can't be written is an error"
if [ -c /dev/full ]; then
	run 1 ./tally stat -o /dev/full true && has 'writing'
	check "a full disk is an error"
fi

# Digits are grouped for people: on terminals, unless the locale is C.
echo 'cycles 1234567' >million
count='./tally stat --provider scripted:million -e cycles'
run 0 $count true && has ' 1234567 ' && LC_ALL=en_US.UTF-8 run 0 $count true && has ' 1234567 ' && run 0 $count -o file true && grep -q ' 1234567 ' file
check "off a terminal digits are not grouped"
run 0 $count -B true && has ' 1,234,567 ' && run 0 $count --big-num -o file true && grep -q ' 1,234,567 ' file && run 0 $count -B --no-big-num true && has ' 1234567 '
check "-B groups them, and --no-big-num doesn't"
if have script; then
	on_terminal() { env -u LANG -u LC_NUMERIC -u LC_ALL TERM=dumb "$@" script -qec "$count ${more-} true" /dev/null </dev/null >out 2>&1; }
	on_terminal LC_ALL=en_US.UTF-8 && has ' 1,234,567 ' && on_terminal LC_NUMERIC=de_DE LANG=C && has ' 1,234,567 ' && on_terminal LANG=en_US.UTF-8 && has ' 1,234,567 '
	check "on a terminal digits are grouped"
	for locale in LC_ALL=C LC_ALL=POSIX LC_ALL=C.UTF-8 LC_NUMERIC=C; do
		on_terminal LANG=en_US.UTF-8 "$locale" && has ' 1234567 ' || break
	done && on_terminal NOTHING= && has ' 1234567 '
	check "… but not in the C locale, nor if there is none"
	more=--no-big-num && on_terminal LC_ALL=en_US.UTF-8 && has ' 1234567 ' && more=-B && on_terminal LC_ALL=C && has ' 1,234,567 '
	check "… whatever the locale, with -B and --no-big-num"
else
	skip "digits on a terminal" "there is no script(1)"
fi

# --- targets -----------------------------------------------------------------------------------------------------
if [ $perf_works = yes ]; then
	sh -c 'read line <ready; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done' & pid=$!
	./tally stat -j -o out -e task-clock -p $pid & tally=$!
	until grep -q "anon_inode:\[perf_event\]" <(ls -l /proc/$tally/fd 2>/dev/null); do sleep 0.01; done
	echo >ready
	wait $tally && wait $pid
	json 'd["target"] == "process '$pid'" and e["task-clock"]["value"] > 1e6 and d["exit_status"] is None'
	check "-p counts a running process until it ends"

	run 0 ./tally stat -j -e task-clock -p $$ -- sleep 0.02 && json 'e["task-clock"]["value"] < 5e6 and d["user_ns"] is None'
	check "-p with a command counts the process while the command runs"
	run 0 ./tally stat -j -e task-clock -t $$ -- sleep 0.01 && json 'd["target"].startswith("thread ")'
	check "-t counts a thread"
	run 0 ./tally stat -j -e page-faults sh -c 'sh -c "exit 0"; sh -c "exit 0"; :'
	faults=$(python3 -c 'import json;print(json.loads(open("out").read())["events"][0]["value"])')
	run 0 ./tally stat -i -j -e page-faults sh -c 'sh -c "exit 0"; sh -c "exit 0"; :' && json 'd["events"][0]["value"] < '"$faults"
	check "children are counted, unless --no-inherit"
else
	skip "targets" "perf events are refused here"
fi
if [ $is_root = yes ] && [ $perf_works = yes ]; then
	run 0 ./tally stat -j -C 0 -e cpu-clock sleep 0.02 && json 'd["target"].startswith("CPU 0") and 15e6 < e["cpu-clock"]["value"] < 2e9'
	check "-C counts a CPU"
fi

# --- known truth -------------------------------------------------------------------------------------------------
# A sanitized build's leak checker itself calls getppid.
export ASAN_OPTIONS=detect_leaks=0
private="unshare -m sh -c 'mount -t tracefs none /sys/kernel/tracing 2>/dev/null; exec \"\$@\"' sh"
if [ $is_root = yes ] && [ $perf_works = yes ] &&
   eval $private ./tally stat -j -e syscalls:sys_enter_getppid true 2>/dev/null; then
	for n in 0 1 12345; do
		eval run 0 $private ./tally stat -j -e syscalls:sys_enter_getppid ./getppid_loop $n &&
			json "e['syscalls:sys_enter_getppid']['value'] == $n"
		check "$n getppid calls are counted as $n"
	done
	eval run 0 $private ./tally stat -j -r 3 -e "'{syscalls:sys_enter_getppid,page-faults}'" ./getppid_loop 77 &&
		json "e['syscalls:sys_enter_getppid']['value'] == 77 and e['syscalls:sys_enter_getppid']['sigma'] == 0"
	check "a group with a software event counts exactly in each run"
	eval run 0 $private ./tally stat -j -e syscalls:sys_enter_getppid --filter "'common_pid > 0'" ./getppid_loop 33 &&
		json "e['syscalls:sys_enter_getppid']['value'] == 33"
	check "a filter that all hits pass changes no count"
	eval run 0 $private ./tally stat -j -e syscalls:sys_enter_getppid --filter "'common_pid > 0'" --filter "'common_pid == 0'" \
		-e cs ./getppid_loop 33 && json "e['syscalls:sys_enter_getppid']['value'] == 0"
	check "two filters of an event must both pass, and do not apply to other -e"
	eval run 1 $private ./tally stat -e syscalls:sys_enter_getppid --filter "'common_pidd > 0'" ./getppid_loop 33 &&
		has 'no such field' && has '^' && lacks 'sys_enter_getppid  '
	check "the message for a wrong filter points at the fault"
else
	skip "known numbers of system calls" "needs root and tracefs"
fi

unset ASAN_OPTIONS

# --- without privilege, without perf events ----------------------------------------------------------------------
if [ $is_root = yes ] && [ "$paranoid" = 2 ] && [ $perf_works = yes ]; then
	run 0 $nobody ./tally stat -j sh -c 'sleep 0.01; sleep 0.01' &&
		json 'e["context-switches"]["source"] == "wait4" and e["context-switches"]["value"] >= 2' &&
		json 'e["cpu-migrations"]["state"] == "withheld" and e["cpu-migrations"]["value"] is None' &&
		json 'e["page-faults:u"]["user_only"] and e["task-clock"]["value"] > 0'
	check "counting of user mode only shows no zeros that mean nothing"
	run 0 $nobody ./tally stat true && has 'page-faults:u' && has 'only user mode is counted' && has '(wait4)'
	check "a note says that only user mode is counted"
	cp "$(command -v dash || command -v sh)" privileged && chmod 4755 privileged
	run 0 $nobody ./tally stat -j -e task-clock,page-faults,instructions ./privileged -p -c 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done' &&
		json 'e["task-clock"]["source"] == "wait4" and e["task-clock"]["value"] > 2e6' &&
		json 'e["page-faults"]["source"] == "wait4" and any("set-user-ID" in n for n in d["notes"])'
	check "counters that a set-user-ID program dropped are not shown as its count"
	run 0 $nobody ./tally stat -a true && has '(/proc)' && has 'counting whole CPUs is refused'
	check "a refused system-wide count takes values from /proc"
	run 0 $nobody ./tally stat -j -a -e cpu-clock,task-clock,context-switches,page-faults sleep 0.05 &&
		json 'all(e[n]["state"] == "withheld" and e[n]["value"] is None and "ticks of 10 ms" in e[n]["note"] for n in ("cpu-clock", "task-clock"))' &&
		json 'all(e[n]["source"] == "/proc" and e[n]["value"] > 0 for n in ("context-switches", "page-faults"))'
	check "ticks of busy time are not shown as cpu-clock"
	run 0 $nobody ./tally stat -j -C 0 -e cpu-clock,context-switches,page-faults sleep 0.05 &&
		json 'all(x["state"] == "withheld" and x["value"] is None for x in e.values())' && json '"per CPU" in e["page-faults"]["note"]'
	check "figures of the whole system are not shown for single CPUs"
else
	skip "an unprivileged user" "needs root and perf_event_paranoid 2"
fi
run 0 ./tally stat -j -e context-switches:u sh -c 'sleep 0.01; sleep 0.01' &&
	json 'e["context-switches:u"]["source"] == "wait4" and e["context-switches:u"]["value"] >= 2'
check "context-switches:u is never shown as 0"

for action in EPERM ENOSYS EACCES; do
	run 5 ./refuse_perf $action ./tally stat -j sh -c 'sleep 0.01; exit 5' &&
		json 'all(e[n]["source"] == "wait4" and e[n]["value"] > 0 for n in ("task-clock", "page-faults", "context-switches"))' &&
		json 'e["cycles"]["value"] is None and e["cycles"]["note"] and len(d["notes"]) == 1'
	check "$action: times, faults and switches come from wait4"
done
run 0 ./refuse_perf EPERM ./tally stat true && has '(wait4)' && has 'perf events are refused (EPERM)'
check "a refusal is printed once, with its remedy"
run 0 ./refuse_perf EPERM ./tally stat -r 3 -j -e page-faults true && json 'e["page-faults"]["sigma"] is not None'
check "wait4's figures also have a spread"
run 0 ./refuse_perf EPERM ./tally stat -I 20 -j -e task-clock,page-faults sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' &&
	json 'docs[0]["events"][0]["source"] == "/proc" and d["events"][0]["source"] == "wait4"' &&
	json 'sum(x["events"][0]["value"] for x in docs) > 1e7'
check "without perf events, intervals come from /proc"
run 0 ./refuse_perf ENOSYS ./tally stat -j -a -e context-switches sleep 0.02 && json 'e["context-switches"]["source"] == "/proc"'
check "without perf events, the whole system's values come from /proc"
run 0 ./refuse_perf EPERM ./tally stat -j -p $$ sleep 0.01 && json 'e["task-clock"]["source"] == "/proc" and e["cycles"]["value"] is None'
check "without perf events, a process's values come from /proc"

# --- scripted ----------------------------------------------------------------------------------------------------
cat >script <<'SCRIPT'
task-clock 2000000000
cycles 3000000000/1000/630
instructions 1000000000
LLC-loads 40000000
LLC-load-misses 20000000
* refuse ENOENT
SCRIPT
run 0 ./tally stat --provider scripted:script -d true && has '(scripted)' && has '(63 % of the time, scaled)' &&
	has 'insn per cycle, CPI' && has 'In short: memory bound' && has '% of all LL-cache accesses'
check "a scripted PMU gives ratios and a verdict"

echo 'cycles 1000/1000000/50000' >small
run 0 ./tally stat --provider scripted:small -e cycles true && has '<withheld>' && has 'had a counter for 5 % of the time only; --min-running' &&
	run 0 ./tally stat --provider scripted:small -e cycles --min-running 1 true && has ' 20000 ' && has '(5.0 % of the time, scaled)' &&
	run 0 ./tally stat --provider scripted:small -e cycles -x, true && has '<withheld>,' &&
	run 0 ./tally stat --provider scripted:small -e cycles -j true && has '"state":"withheld","value":null' && has '"scale_error":null'
check "a figure of a small part of the time is withheld, unless asked for"
# --- metrics -----------------------------------------------------------------------------------------------------
like() { grep -q -- "$1" out; }
cat >metrics <<'METRICS'
# mine
miss-cost = 200 * 'llc-mpki' / 1000   # cycles/insn, waits for memory
none = instructions / (cycles - cycles)
loop = loop2
loop2 = loop
METRICS
metrics="./tally stat --provider scripted:script --metrics-file metrics"
run 0 $metrics -M llc-mpki,miss-cost,none true && like ' 20.00  *llc-mpki  *# per 1000 insn' &&
	like ' 4.000  *miss-cost  *# cycles/insn' && like ' –  *none  *# divided by zero' && lacks 'inf' && lacks 'nan'
check "-M computes built-in and own metrics, and division by zero has no value"
{ echo 'counters 1'; cat script; } >one
run 0 ./tally stat --provider scripted:one -M ipc true && like ' 0.21  *ipc' && has 'not counted at the same time'
check "a metric whose events were not counted at the same time says so"
run 0 $metrics -M branch-mpki,topdown true && like ' –  *branch-mpki  *# branch-misses: ' && like ' –  *retiring  *# .*PMU'
check "a metric without its events names them, and is not 0"
run 0 ./tally stat --provider scripted:one --metrics-file metrics -M IPC,none -j true &&
	json '[m["name"] for m in d["metrics"]] == ["ipc", "none"]' && json 'd["metrics"][1]["value"] is None' &&
	json 'not d["metrics"][0]["same_time"] and abs(d["metrics"][0]["value"] - 0.21) < 1e-9'
check "-j has the metrics; no value is null"
run 0 $metrics -M llc-mpki -x, true && like '^,,llc-mpki,,,20.000000,per 1000 insn,metric,$'
check "-x has a row for each metric"
run 0 $metrics -M llc-mpki -r 2 -x, true && like '^,,llc-mpki,,,,20.000000,per 1000 insn,metric,$'
check "... also of several runs"
run 2 $metrics -M loop true && has 'defined by itself'
check "metrics that are defined by each other are an error"
echo 'dashed = page-faults / 2' >dashed
run 0 ./tally stat --metrics-file dashed -M dashed true && has "a name with '-' needs quotes: 'page-faults'"
check "a metric that subtracts by mistake is told of quotes"
run 2 $metrics -M frontend-bund true && has "did you mean 'frontend-bound'" && run 2 ./tally stat --metrics-file none -M ipc true &&
	has 'none: No such file' && run 2 ./tally stat --metrics-dir . true && has 'need -M'
check "an unknown metric or file is an error with advice"
echo 'x = 1 +' >wrong
run 2 ./tally stat --metrics-file wrong -M x true && has 'wrong:1: ' && has 'hint: a line is'
check "a wrong line of a metrics file is named"
mkdir -p pmu/cpu
echo '[{"MetricName":"from_perf","MetricExpr":"X.Y + faults","ScaleUnit":"100%"},{"EventName":"X.Y","EventCode":"0x1","Unit":"gone"}]' >pmu/cpu/m.json
run 0 ./tally stat --metrics-dir pmu -M from_perf true && like " –  *from_perf  *# X.Y: there is no PMU 'uncore_gone'"
check "perf's JSON files are read"
if [ "$(uname -m)" = x86_64 ]; then
	x86=tree/tools/perf/pmu-events/arch/x86
	mkdir -p $x86/mine
	printf 'Family-model,Version,Filename,EventType\n.*,v1,mine,core\n' >$x86/mapfile.csv
	printf '%s\n' '[{"MetricName":"faults_per_cpu","MetricExpr":"page\\-faults / #num_cpus","ScaleUnit":"1faults"}]' >$x86/mine/m.json
	run 0 env TALLY_METRICS_DIR=tree ./tally stat -M faults_per_cpu true && like 'faults_per_cpu  *# faults'
	check "a Linux tree's map selects the CPU's metrics"
fi
run 0 ./tally list metrics --metrics-file metrics mis && like '^miss-cost .*waits for memory' && like '^branch-miss-rate' && lacks 'ipc' &&
	run 0 ./tally list -j metrics topdown && python3 -c '
import json
d = json.load(open("out"))
assert [m["name"] for m in d["metrics"]] == ["frontend-bound", "backend-bound", "bad-speculation", "retiring"]'
check "'list metrics' lists them, each once"
echo 'f = "page-faults" * 0 + 5 # u' >faults
run 0 ./tally stat -I 20 --interval-count 2 --metrics-file faults -M f -a sleep 1 && [ "$(grep -c ' f  *# u' out)" = 2 ] &&
	run 0 ./tally stat --metrics-file faults -M f -a -A sleep 0.01 && [ "$(grep -c '^CPU[0-9]*  *5.000  *f' out)" = "$(nproc)" ]
check "each interval and each CPU has its metrics"

printf '%s\n' 'counters 3' 'task-clock 2000000000' 'cycles 3000000000' 'instructions 6000000000' 'branches 100000000' \
	'branch-misses 1000000' 'cache-misses 20' >three
four='{cycles,instructions,branches,branch-misses}'
run 0 ./tally stat --provider scripted:three -e $four -o counts true && has "group $four can't be counted at once: there are counters for 3 of its 4 events; --split-groups" &&
	run 0 ./tally stat --provider scripted:three -e $four -j true && lacks "can't be counted at once:"
check "a group with more members than counters is named before the run, but not to programs that read stderr"
run 0 ./tally stat --provider scripted:three --split-groups -e $four true && has 'they are counted separately' && lacks '<not'
check "--split-groups counts its events separately"
run 2 ./tally stat --provider scripted:three --no-multiplex -e $four true && has 'there are counters for 3 of its 4' && lacks elapsed &&
	run 0 ./tally stat --provider scripted:three --no-multiplex --split-groups -e $four true && has 'once for each of 2 sets'
check "--no-multiplex refuses such a group, unless it is split"
run 0 ./tally stat --provider scripted:three --no-multiplex -e task-clock,cycles,instructions,branches,branch-misses,cache-misses -j -r 2 sh -c 'echo run >>runs' &&
	json 'd["runs"] == 2 and all(x["state"] == "counted" and not x["scaled"] for x in e.values())' &&
	json '[m["apart"] for m in e["branch-misses"]["metrics"]] == [True, False]' && [ "$(grep -c run runs)" = 4 ]
check "--no-multiplex runs the command once for each set of events"
run 5 ./tally stat --provider scripted:three --no-multiplex -e cycles,branches,branch-misses,cache-misses sh -c 'exit 5' && has '2 of 2 runs failed'
check "… and passes its exit status on"
(cat three; echo 'instructions 6600000000') >unequal
run 1 ./tally stat --provider scripted:unequal --no-multiplex -e cycles,instructions,branches,branch-misses,cache-misses true &&
	has 'instructions differs by 9.1 % (6000000000 to 6600000000; the limit is 5 %)' && has 'hint: ' && lacks elapsed &&
	run 0 ./tally stat --provider scripted:unequal --no-multiplex --max-difference 10 -e cycles,instructions,branches,branch-misses,cache-misses true && has 'by 9.1 % between them'
check "… and refuses figures of runs that did different work"
./tally stat --provider scripted:three --no-multiplex -e cycles,branches,branch-misses,cache-misses sh -c '[ ! -e begun ] && >begun || { kill -INT $PPID; exec sleep 30; }' >out 2>&1
has '<not counted>' && has 'interrupted before the end of the run that counts it' && [ "$(grep -c ' 3000000000 ' out)" = 1 ] && lacks 'sets of events'
check "… and, interrupted, shows what was counted until then"
refuses() { run 2 ./tally stat --no-multiplex "$@" && has "$why"; }
why="can't be run again" && refuses -p $$ && refuses -a true && why='-I exclude each other' && refuses -I 100 true &&
	why='cut short' && refuses --duration 1 true && why='only' && refuses --control fd:0 true &&
	run 2 ./tally stat --max-difference 3 true && has 'needs --no-multiplex' &&
	run 2 ./tally stat --provider simulated --no-multiplex true && has 'counts all events all the time'
check "… and says where it makes no sense"
run 0 ./tally stat --no-multiplex -d true && has task-clock && lacks 'sets of events'
check "… and is one run without hardware counters, or with enough of them"

LC_ALL=C ./tally stat -r 2 -e task-clock true >out 2>&1
LC_ALL=C grep -q '[^ -~]' out && false || has 'mean +- sigma of 2 runs'
check "without UTF-8 the output is ASCII"
run 0 ./tally stat -n -r 3 true && has elapsed && lacks task-clock && ! ./tally stat -n -d true 2>out
check "-n measures only the time"
run 0 ./tally stat -B true
check "perf's -B is accepted"
run 0 ./tally stat true && ! grep -q "$(printf '\033')" out
check "output that is no terminal has no colours"
run 3 ./tally stat -r 3 sh -c 'exit 3' && has '3 of 3 runs failed, the first with exit status 3'
check "-r says how many runs failed"

echo "1..$number"

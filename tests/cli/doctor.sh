#!/bin/sh
# SPEC G10.  TAP; $TALLY is the binary, $REFUSE_PERF a program that runs it under a seccomp filter.
set -u
. "$(dirname "$0")/tap.sh"
chmod 755 "$scratch"
cp "$TALLY" "$scratch/tally" && chmod 755 "$scratch/tally"
cp "$REFUSE_PERF" "$scratch/refuse_perf" && chmod 755 "$scratch/refuse_perf"
cd "$scratch" || exit 1

check() { if [ "$2" = yes ]; then ok "$1"; else not_ok "$1"; fi; }
# run EXPECTED_STATUS command…: stdout and stderr go to ./out
run() { expected=$1; shift; "$@" >out 2>&1; status=$?; [ "$status" = "$expected" ]; }
has() { grep -qF -- "$1" out; }
answer() { if "$@"; then echo yes; else echo no; fi; }
jq() { python3 -c 'import json,sys; d=json.load(open("out")); f={x["id"]:x for x in d["findings"]}; sys.exit(not eval(sys.argv[1]))' "$1"; }

run 2 ./tally doctor surplus && has "unexpected argument 'surplus'"
check "one argument too many is wrong use" "$(answer [ $? = 0 ])"

for action in EPERM ENOSYS EACCES; do
	run 1 ./refuse_perf $action ./tally doctor && has 'a seccomp filter refuses perf_event_open' && has 'cure:'
	check "a refusal by a seccomp filter ($action) is told apart from one by the kernel" "$(answer [ $? = 0 ])"
done
run 1 ./refuse_perf KILL ./tally doctor && has 'a seccomp filter kills'
check "doctor survives a filter that kills, and names it" "$(answer [ $? = 0 ])"

LC_ALL=C ./refuse_perf EPERM ./tally doctor >out 2>&1
if LC_ALL=C grep -q '[^ -~	]' out; then not_ok "without UTF-8 the output is ASCII"; else ok "without UTF-8 the output is ASCII"; fi

./tally doctor >out 2>&1
works=$?
[ $works -le 1 ] && has 'What works' && has 'Limits'
check "the report has all its parts" "$(answer [ $? = 0 ])"

if command -v python3 >/dev/null; then
	run $works ./tally doctor -j && jq 'd["version"] == 1 and d["works"] == ('$works' == 0)'
	check "the 'works' of JSON agrees with the exit status" "$(answer [ $? = 0 ])"
	jq 'all(x["state"] == "ok" or x["cause"] for x in d["findings"])'
	check "each probe that fails has a cause" "$(answer [ $? = 0 ])"
	jq 'all(not x["cure"] or x["state"] != "ok" for x in d["findings"])'
	check "a probe that works has no remedy" "$(answer [ $? = 0 ])"
	run 1 ./refuse_perf ENOSYS ./tally doctor -j &&
		jq 'd["facts"]["probes"]["reach"] == "ENOSYS" and f["stat"]["state"] == "missing" and f["stat"]["cure"]'
	check "JSON has the probe's answer" "$(answer [ $? = 0 ])"
else
	for name in status causes cures probe; do skip "JSON $name" "no python3"; done
fi

if grep -q __asan_report_load "$TALLY"; then
	skip "the self-test holds what doctor says" "a sanitizer touches pages of its own"
else
	run 0 "$TALLY" doctor --self-test && has 'what doctor says holds here' && ! has '✗'
	check "the self-test holds what doctor says" "$(answer [ $? = 0 ])"
fi
run 0 ./refuse_perf EPERM ./tally doctor --self-test && has 'skipped: a seccomp filter refuses perf_event_open'
check "the self-test skips what doctor calls missing" "$(answer [ $? = 0 ])"
if grep -q __asan_report_load "$TALLY"; then
	skip "JSON of the self-test" "a sanitizer touches pages of its own"
elif command -v python3 >/dev/null; then
	run 0 "$TALLY" doctor --self-test -j && python3 -c 'import json,sys; d=json.load(open("out"))
assert d["schema"] == "tally-self-test" and d["failed"] == 0 and len(d["tests"]) == 15
assert {x["state"] for x in d["tests"]} <= {"ok", "skipped"} and all(x["detail"] for x in d["tests"])'
	check "JSON of the self-test" "$(answer [ $? = 0 ])"
else
	skip "JSON of the self-test" "no python3"
fi
[ -z "$(find /tmp -maxdepth 1 -name 'tally-self-test-*' -newer "$scratch/tally" 2>/dev/null)" ]
check "the self-test leaves no files" "$(answer [ $? = 0 ])"
mkdir temporary
TMPDIR=$PWD/temporary "$TALLY" doctor --self-test >out 2>&1 &
tester=$!
until [ -n "$(ls temporary)" ] || ! kill -0 $tester 2>/dev/null; do :; done
kill -TERM $tester
wait $tester
[ $? = 143 ] && [ -z "$(ls temporary)" ]
check "nor when a signal ends it; TMPDIR says where they lie meanwhile" "$(answer [ $? = 0 ])"
run 1 env TMPDIR="$PWD/nowhere" "$TALLY" doctor --self-test && has 'nowhere/tally-self-test-' && has "can't be made" && has 'hint: set TMPDIR'
check "a folder for temporary files that isn't there is an error" "$(answer [ $? = 0 ])"
# perf_event_open works for doctor itself, and not for the programs that it starts.
if [ $works = 0 ]; then
	run 1 sh -c "ulimit -f 4; exec ./tally doctor --self-test" && has "claims do not hold here"
	check "a claim that does not hold is a failure (here: no recording fits)" "$(answer [ $? = 0 ])"
else
	skip "a claim that does not hold is a failure" "perf events don't work here"
fi

(ulimit -n 20 && ./tally doctor) >out 2>&1
has 'up to 20:' && has 'RLIMIT_NOFILE allows 20'
check "a low limit of descriptors is reported" "$(answer [ $? = 0 ])"

if [ $works -ne 0 ]; then
	for name in nobody namespace; do skip "unprivileged: $name" "perf events don't work here"; done
	echo "1..$number"
	exit 0
fi
level=$(cat /proc/sys/kernel/perf_event_paranoid)
if [ "$(id -u)" = 0 ] && [ "$level" -ge 1 ] && $nobody true 2>/dev/null; then
	$nobody ./tally doctor >out 2>&1
	has "kernel.perf_event_paranoid is $level, which leaves whole CPUs to CAP_PERFMON" &&
		has 'sudo sysctl kernel.perf_event_paranoid=0'
	check "the report tells an unprivileged user which paranoid level is needed" "$(answer [ $? = 0 ])"
else
	skip "the report tells an unprivileged user which paranoid level is needed" "needs root, setpriv and a paranoid level from 1 up"
fi
if [ "$level" -ge 1 ] && unshare -r true 2>/dev/null; then
	unshare -r ./tally doctor >out 2>&1
	has "held in a user namespace, where they don't count"
	check "capabilities in a user namespace are not counted as capabilities" "$(answer [ $? = 0 ])"
else
	skip "capabilities in a user namespace are not counted as capabilities" "no user namespaces, or a paranoid level below 1"
fi
echo "1..$number"

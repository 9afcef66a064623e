#!/bin/bash
# The choice of the process provider where perf events are refused (docs/process.md).  TAP; $TALLY is the
# binary in the build tree, beside the preloaded object; $REFUSE_PERF runs it under a seccomp filter.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1

# run STATUS command…: standard output goes to ./out, standard error to ./err
run() { expected=$1; shift; "$@" >out 2>err; status=$?; [ "$status" = "$expected" ]; }
says() { grep -qF -- "$1" err; }
# The line that tells of the choice appears once.
told() { [ "$(grep -c "^tally: the kernel refuses perf events here ($1): $2 with the process provider, inside the program\$" err)" = 1 ]; }
silent() { ! grep -q 'process provider' err; }
json() { python3 -c '
import json, sys
docs = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
d = docs[-1]
e = {x["name"]: x for x in d["events"]}
sys.exit(not eval(sys.argv[2]))' "$@"; }
refused() { "$REFUSE_PERF" "$refusal" "$@"; }

refusal=EPERM
refused "$TALLY" doctor -j >out 2>err
if ! grep -q '"provider": "process"' out; then
	skip_all "this tally has no process provider: $(grep -A3 '"id": "process"' out | tr -d '\n')"
fi

cat >spin.c <<'C'
#include <stdio.h>
#include <time.h>
static double used_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}
static volatile unsigned long sink;
__attribute__((noinline)) void spin_here(double until_s)
{
	while (used_s() < until_s)
		for (unsigned i = 0; i < 10000; i++)
			sink += i;
}
int main(void)
{
	spin_here(0.2);
	puts("done");
	return 5;
}
C
${CC:-cc} -O1 -g -o spin spin.c || exit 1

# --- each command chooses, and says so once ----------------------------------------------------------------------
for refusal in EPERM ENOSYS EACCES; do
	run 5 refused "$TALLY" stat -- ./spin && told $refusal counting && grep -qx done out && says '(process)'
	check "stat chooses the process provider ($refusal), and says so once"
	run 5 refused "$TALLY" record -o $refusal.data -- ./spin && told $refusal sampling && grep -qx done out
	check "record does ($refusal)"
	run 0 "$TALLY" report --stdio -g none -i $refusal.data && grep -qE '^ *(9[0-9]|100)\.[0-9]+% .*spin_here' out
	check "the samples are of the program's function ($refusal)"
done
refusal=EPERM
run 5 refused "$TALLY" flamegraph -o graph.svg -- ./spin && told EPERM sampling && grep -q spin_here graph.svg && grep -qx done out
check "flamegraph chooses it, and says so once"
run 5 refused "$TALLY" top --stdio -d 100ms -- ./spin && told EPERM sampling && grep -q spin_here out && grep -qx done out
check "top chooses it, and says so once"
run 5 refused "$TALLY" record -q -o quiet.data -- ./spin && [ ! -s err ]
check "record -q says nothing"
run 0 refused "$TALLY" compare -r 2 true /bin/true && [ "$(grep -c 'with the process provider' err)" = 1 ]
check "compare chooses it for both commands"
run 5 refused "$TALLY" stat -j -- ./spin && json err 'd["provider"] == "process" and 150e6 < e["task-clock"]["value"] < 400e6' &&
	json err 'len([n for n in d["notes"] if "the kernel refuses perf events here (EPERM)" in n]) == 1' && ! grep -q ^tally err
check "JSON has the provider, and the reason among its notes; nothing else is printed"
run 5 refused "$TALLY" stat -x, -e task-clock -- ./spin && [ "$(wc -l <err)" = 1 ] && ! says tally:
check "CSV has no other lines"
run 5 refused "$TALLY" stat -j -o file -- ./spin && told EPERM counting && json file 'd["provider"] == "process"'
check "with -o the line goes to standard error"
run 0 refused "$TALLY" stat -r 3 -- true && told EPERM counting
check "several runs are one choice"
run 5 refused "$TALLY" stat -I 50 -j -- ./spin && json err 'len(docs) > 2 and all(x["provider"] == "process" for x in docs)' &&
	json err '150e6 < sum(y["value"] or 0 for x in docs for y in x["events"] if y["name"] == "task-clock") < 400e6'
check "intervals are counted by it"
run 0 refused "$TALLY" stat --no-multiplex --max-difference 5 -- true && told EPERM counting
check "--no-multiplex is no error where all events are counted all the time"
run 127 refused "$TALLY" stat -- ./no-such-program && silent && says "there is no file './no-such-program'"
check "a command that isn't there is an error, without the line"
run 127 refused "$TALLY" record -o nothing -- ./no-such-program && silent && [ ! -e nothing ]
check "also for record"
refusal=KILL
run 5 refused "$TALLY" stat -- ./spin && says 'the kernel refuses perf events here (a filter kills the caller)'
check "a filter that kills who calls perf_event_open doesn't kill tally"
refusal=EPERM

# --- where the kernel answers ------------------------------------------------------------------------------------
if "$TALLY" stat -e task-clock:u true 2>/dev/null && "$TALLY" doctor -j 2>/dev/null | grep -q '"provider": "kernel"'; then
	run 5 "$TALLY" stat -- ./spin && silent && ! says '(process)'
	check "where the kernel counts, it is used"
	run 5 "$TALLY" record -o kernel.data -- ./spin && silent
	check "also by record"
else
	skip "where the kernel counts, it is used" "it does not here"
	skip "also by record" "it does not here"
fi
run 5 refused "$TALLY" stat --provider kernel -- ./spin && silent && says 'perf events are refused (EPERM)' && says '(wait4)'
check "stat --provider kernel takes times from resource usage"
run 1 refused "$TALLY" record --provider kernel -o none.data -- ./spin && silent && says seccomp && [ ! -e none.data ]
check "record --provider kernel fails as the kernel does"
run 5 "$TALLY" stat --provider process -- ./spin && says '(process)' && ! says 'refuses perf events'
check "--provider process is a choice of the user's, which needs no line"

# --- what only the kernel can give -------------------------------------------------------------------------------
for option in --off-cpu --all-kernel -d -b --kernel-callchains --per-thread; do
	run 1 refused "$TALLY" record $option -o none.data -- ./spin && says 'the kernel refuses perf events here (EPERM)' &&
		says 'hint: without' && ! grep -q done out && [ ! -e none.data ]
	check "record $option: the message says what was refused, and what can be done"
done
run 1 refused "$TALLY" record -a -o none.data -- sleep 0.01 && says seccomp && says 'a command that tally starts can be measured all the same'
check "record -a: the hint says what works"
run 1 refused "$TALLY" record -p $$ -o none.data && says 'a command that tally starts can be measured all the same'
check "record -p: the hint says what works"
run 1 refused "$TALLY" top --stdio -n 1 && says 'a command that tally starts can be measured all the same'
check "top: the hint says what works"
run 2 refused "$TALLY" record -e cycles -o none.data -- ./spin && says "'cycles'" && says 'the kernel refuses perf events here (EPERM), and' &&
	! grep -q done out
check "record -e cycles: the message says what the process provider has"
run 2 refused "$TALLY" record -e sched:sched_switch -o none.data -- ./spin && says 'sched:sched_switch' &&
	says 'the kernel refuses perf events here (EPERM), and'
check "record -e of the kernel's tracepoint: the same"
run 1 refused "$TALLY" record -e cpu-clock:k -o none.data -- ./spin && says "the kernel's code can't be sampled" && says 'hint: leave out the modifier'
check "record -e cpu-clock:k: the message says what to do"
run 5 refused "$TALLY" stat -j -e task-clock,cycles -- ./spin && json err 'e["task-clock"]["value"] > 150e6 and e["cycles"]["value"] is None and e["cycles"]["note"]'
check "stat counts what it can, and says in the row why an event is missing"
run 2 refused "$TALLY" stat -e cycles,instructions -- ./spin && says 'the kernel refuses perf events here (EPERM), and' && ! grep -q done out
check "stat without any event that can be counted is an error"
run 2 "$TALLY" stat --provider process -p $$ && says '-p' && says 'hint'
check "--provider process -p is an error, with what works"

# --- programs that can't be entered ------------------------------------------------------------------------------
# Uses $name, $reason and $hint.
refuses_request() {
	run 126 "$TALLY" stat --provider process -- "$@" && says "$reason" && says "hint: $hint" && ! grep -q done out
	check "$name: --provider process is an error"
}
# refuses NAME REASON HINT PROGRAM…
refuses() {
	local name=$1 reason=$2 hint=$3
	shift 3
	run 126 refused "$TALLY" record -o none.data -- "$@" && says "$reason" && says "hint: $hint" &&
		says 'the kernel refuses perf events here (EPERM)' && ! grep -q done out && [ ! -e none.data ]
	check "$name: record says why, and the way out"
	"${@}" >/dev/null 2>&1
	local plain=$?
	run $plain refused "$TALLY" stat -j -- "$@" && json err 'd["provider"] == "kernel" and e["task-clock"]["source"] == "wait4"' &&
		grep -qF -- "$reason" err
	check "$name: stat counts by resource usage, and says why"
	refuses_request "$@"
}
if ${CC:-cc} -O1 -static -o spin_static spin.c 2>/dev/null; then
	refuses "a static program" "it is linked statically" "link it without -static" ./spin_static
else
	skip "a static program" "there is no static libc"
fi
if have musl-gcc && musl-gcc -O1 -o spin_musl spin.c 2>/dev/null && ./spin_musl >/dev/null; [ $? = 5 ]; then
	refuses "a program for musl" "spin_musl' can't be entered" "build it for glibc" ./spin_musl
else
	skip "a program for musl" "there is no musl-gcc"
fi
printf 'void _start(void){__asm__("mov $5,%%ebx; mov $1,%%eax; int $0x80");}\n' >small.c
if [ "$(uname -m)" = x86_64 ] && ${CC:-cc} -m32 -nostdlib -fno-pic -no-pie -static -o small small.c 2>/dev/null; then
	refuses "a 32-bit program" "small' can't be entered" "build it for 64 bits" ./small
else
	skip "a 32-bit program" "this compiler makes none"
fi
cp spin spin_rights
# $REFUSE_PERF must set no_new_privs, with which these bits have no effect.
name="a set-user-ID program" reason="spin_rights' can't be entered" hint="copy it"
if [ "$(id -u)" = 0 ] && chown 65534 spin_rights && chmod u+s spin_rights && [ "$(findmnt -no OPTIONS -T . | grep -c nosuid)" = 0 ]; then
	refuses_request ./spin_rights
	run 5 refused "$TALLY" stat -- ./spin_rights && told EPERM counting
	check "where set-user-ID has no effect, it is no obstacle"
else
	skip "$name" "needs root, and a file system without nosuid"
	skip "where set-user-ID has no effect, it is no obstacle" "needs root, and a file system without nosuid"
fi
if ${CC:-cc} -O1 -fsanitize=address -o spin_asan spin.c 2>/dev/null && ./spin_asan >/dev/null 2>&1; [ $? = 5 ]; then
	refuses "a program with AddressSanitizer" "spin_asan' can't be entered" "build it without -fsanitize" ./spin_asan
else
	skip "a program with AddressSanitizer" "this compiler makes none"
fi
[ -e spin_static ] && printf '#!%s\n' "$PWD/spin_static" >script && chmod +x script
if [ -e spin_static ]; then
	run 126 refused "$TALLY" record -o none.data -- ./script && says "its interpreter $PWD/spin_static" && says 'is linked statically'
	check "a script's interpreter is what is entered"
	run 5 refused "$TALLY" stat -- sh -c './spin_static' && told EPERM counting && says 'note:'
	check "a program behind a shell that can't be entered is noted"
else
	skip "a script's interpreter" "there is no static libc"
	skip "a program behind a shell" "there is no static libc"
fi
printf 'exit 5\n' >no_format && chmod +x no_format
run 5 refused "$TALLY" stat -- ./no_format && told EPERM counting
check "a script without #! runs in a shell"

cat >spin.go <<'GO'
package main

import (
	"fmt"
	"os"
	"time"
)

//go:noinline
func spinHere(until time.Duration) (sum int) {
	for start := time.Now(); time.Since(start) < until; {
		for i := 0; i < 10000; i++ {
			sum += i
		}
	}
	return
}

func main() {
	done := make(chan int)
	go func() { done <- spinHere(200 * time.Millisecond) }()
	spinHere(200 * time.Millisecond)
	<-done
	fmt.Println("done")
	os.Exit(5)
}
GO
go_build() { HOME=$scratch GOCACHE=$scratch/go CGO_ENABLED=$1 go build "${@:3}" -o "$2" spin.go >/dev/null 2>&1; }
if have_go && go_build 0 go_static && go_build 0 go_pie -buildmode=pie && go_build 1 go_libc -ldflags=-linkmode=external; then
	refuses "a Go program" "it is linked statically" "build it with cgo" ./go_static
	refuses "a Go program without libc" "it uses no libc" "build it with cgo" ./go_pie
	run 5 refused "$TALLY" record -o go.data -- ./go_libc && told EPERM sampling && grep -qx done out &&
		run 0 "$TALLY" report --stdio -g none -i go.data && grep -q 'main.spinHere' out
	check "a Go program that uses libc is sampled"
else
	for name in "a Go program" "a Go program without libc" "a Go program that uses libc"; do skip "$name" "there is no Go, or no cgo"; done
fi

# --- list --------------------------------------------------------------------------------------------------------
run 0 refused "$TALLY" list sw && says 'hint: commands are measured without' && says 'tally list --provider process'
check "list tells where the events of commands are"
run 0 "$TALLY" list --provider process && grep -q '^task-clock .*\[software event\]' out && grep -q '^page-faults' out && ! grep -q '^emulation-faults' out
check "list --provider process has the software events that are counted"

# --- doctor ------------------------------------------------------------------------------------------------------
for refusal in EPERM ENOSYS EACCES KILL; do
	run 0 refused "$TALLY" doctor && grep -q 'commands  *measured by the process provider' out && grep -q 'cause: the kernel refuses perf events' out &&
		grep -q 'process provider  *--provider process' out
	check "doctor tells which provider is used, and why ($refusal)"
done
refusal=EPERM
run 0 refused "$TALLY" doctor -j && python3 -c '
import json
d = json.load(open("out")); f = {x["id"]: x for x in d["findings"]}
assert d["works"] and d["facts"]["provider"] == "process"
assert f["stat"]["state"] == f["record"]["state"] == f["commands"]["state"] == "limited" and f["process"]["state"] == "ok"
assert f["stat"]["cure"] and "EPERM" in f["commands"]["cause"]'
check "JSON tells the same"
if grep -q 'built with a sanitizer' <("$TALLY" stat --provider process "$TALLY" --version 2>&1); then
	skip "the self-test runs commands under the process provider" "it measures tally, which is built with a sanitizer"
else
	run 0 refused "$TALLY" doctor --self-test && grep -q 'what doctor says holds here' out && grep -q '✓ a program samples itself\|ok a program samples itself' out
	check "the self-test runs commands under the process provider"
fi
# A folder with a blank, and one that other users may enter.
for folder in "a b" open; do
	mkdir -p "$folder/src/engine/hosts/process" && cp "$TALLY" "$folder" &&
		cp "$(dirname "$TALLY")/src/engine/hosts/process/libtally-process.so" "$folder/src/engine/hosts/process"
done
run 5 refused "a b/tally" stat -- ./spin && says '(wait4)' && silent
check "an object whose path has a blank can't be preloaded: stat counts by resource usage"
chmod 755 . && chmod -R a+rX open spin
if [ "$(id -u)" = 0 ] && $nobody test -x open/tally; then
	mkdir theirs && chmod 777 theirs
	refusal=EPERM
	cp "$REFUSE_PERF" open/refuse
	run 5 $nobody open/refuse EPERM open/tally stat -- ./spin && told EPERM counting && says '(process)'
	check "an ordinary user's stat chooses the process provider"
	run 5 $nobody open/refuse EPERM open/tally record -o theirs/data -- ./spin && told EPERM sampling &&
		run 0 "$TALLY" report --stdio -g none -i theirs/data && grep -q spin_here out
	check "so does an ordinary user's record"
else
	skip "an ordinary user's stat chooses the process provider" "needs root, to be another user"
	skip "so does an ordinary user's record" "needs root, to be another user"
fi
# A copy finds no object beside it.
cp "$TALLY" tally
if [ ! -e "$(dirname "$TALLY")/../libexec" ] && refused ./tally doctor -j >out 2>err; [ $? = 1 ] && grep -q '"provider": null' out; then
	run 1 refused ./tally doctor && grep -q 'commands  *only times, faults and switches' out
	check "without the object, doctor says so"
	run 5 refused ./tally stat -- ./spin && says '(wait4)' && silent
	check "without the object, stat counts by resource usage"
else
	skip "without the object, doctor says so" "it is installed"
	skip "without the object, stat counts by resource usage" "it is installed"
fi
done_testing

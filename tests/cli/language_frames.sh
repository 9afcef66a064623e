#!/bin/bash
# --language-frames: an interpreter's samples count for the function that it runs, in every view.
# TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
running=
trap '[ -z "$running" ] || kill $running 2>/dev/null; rm -f /tmp/perf-${made:-none}.map; rm -rf "$scratch"' EXIT
export PAGER=cat NO_COLOR= HOME=$scratch XDG_CACHE_HOME=$scratch/cache DEBUGINFOD_URLS= COLUMNS=200
mkdir cache
have python3 && have cc || skip_all "needs python3 and cc"
[ "$(uname -m)" = x86_64 ] || skip_all "the interpreter of this test makes code of x86-64"

# An interpreter like CPython's with -X perf: each function has a trampoline, which calls the
# interpreter again.  `hot` takes three times as long in it as `cold`, and calls a library.
cat >interpreter.c <<'C'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const unsigned char TRAMPOLINE[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
static void (*trampolines[3])(void (*)(void));
volatile long sink;
static char bytes[1 << 20];
__attribute__((noinline)) static void opcode(long n) { for (long i = 0; i < n; i++) sink = sink + i; }
__attribute__((noinline)) static void run_cold(void) { opcode(20000); sink++; }
__attribute__((noinline)) static void run_hot(void) { opcode(60000); qsort(bytes, 100, 1, (int (*)(const void *, const void *))strcmp); trampolines[1](run_cold); sink++; }
__attribute__((noinline)) static void run_main(void) { for (int i = 0; i < 2000; i++) trampolines[0](run_hot); sink++; }
int main(int argc, char **argv)
{
	static const char *const names[] = { "py::hot:a.py", "py::cold:a.py", "py::main:a.py" };
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(path, "w");
	if (code == MAP_FAILED || !map)
		return 77;
	for (int i = 0; i < 3; i++) {
		memcpy(code + 64 * i, TRAMPOLINE, sizeof(TRAMPOLINE));
		fprintf(map, "%lx %zx %s\n", (unsigned long)(code + 64 * i), sizeof(TRAMPOLINE), names[i]);
		trampolines[i] = (void (*)(void (*)(void)))(code + 64 * i);
	}
	fclose(map);
	do
		trampolines[2](run_main);
	while (argc > 1);
	unlink(path);
	return 0;
}
C
cc -O1 -g -fno-omit-frame-pointer -o interpreter interpreter.c 2>out || skip_all "cc does not build the program"
timeout 60 "$TALLY" record -q -e cpu-clock -F 1999 -o tally.data -- ./interpreter >out 2>&1 ||
	skip_all "it can't be recorded here: $(head -c 100 out | tr '\n#' '  ')"

rows() { COLUMNS=300 "$TALLY" report --stdio --percent-limit 0 -i tally.data "$@" >out 2>err; }
# self NAME: prints SELF of the row
self() { sed -En "s/^ *[0-9.]+% +([0-9.]+)% +[^ ]+ +$1( .*)?\$/\1/p" out | head -n 1; }
between() { awk -v x="${1:-none}" 'BEGIN { exit !(x >= '"$2"' && x <= '"$3"') }'; }
rows
check "without it, the interpreter is on top" eval 'between "$(self opcode)" 60 100 && between "$(self py::hot:a.py)" 0 3'
check "… and the head says how to change that" grep -q '^[0-9]*% of the samples are an interpreter.s, for functions that it runs: --language-frames ' out
rows --language-frames
check "… which is gone then" eval '! grep -q "language-frames" out'
check "--language-frames: a function's SELF is what its interpreter took for it" eval 'between "$(self py::hot:a.py)" 50 85'
check "… of each function" eval 'between "$(self py::cold:a.py)" 12 38'
check "… and the interpreter has no row of its own below them" eval '! grep -q " opcode\| run_hot" out'
check "… what they call in libraries stays" grep -Eq ' libc[.-].* ' out
check "… and so does what called the first one" grep -q ' main$' out
rows --language-frames --symbol 'py::cold*'
check "--symbol selects a function by these samples" eval 'between "$(self py::cold:a.py)" 100 100 && ! grep -Eq "[1-9]% +[0-9.]+% +[^ ]+ +opcode" out'
rows --language-frames -g callee --no-children --sort sym
check "trees show who called, without the interpreter" eval 'grep -A3 " py::cold" out | grep -q "py::hot" && ! grep -A6 " py::cold" out | grep -q run_hot'
check "every view has the same self and total" eval 'timeout 100 "$here/compare_views.py" "$TALLY" tally.data --language-frames >out 2>&1'
./interpreter forever &
running=$! made=$!
if timeout 60 "$TALLY" top --stdio -p $running -n 2 -d 0.5 -F 999 --percent-limit 0 --language-frames >out 2>err; then
	check "top shows the same, of stacks" eval 'between "$(self py::hot:a.py)" 40 90 && ! grep -q " opcode" out'
else
	skip "top shows the same, of stacks" "top can't sample here"
fi
kill $running 2>/dev/null

cat >program.py <<'P'
def hot(n):
    t = 0
    for i in range(n):
        t += i * i % 7
    return t
for _ in range(20):
    hot(100000)
P
python=
for one in python3 python3.12 python3.13 ~root/.pyenv/versions/3.1[2-9]*/bin/python3; do
	[ -n "$python" ] || ! "$one" -X perf -c 'import sys; sys.exit(not sys.is_stack_trampoline_active())' >out 2>&1 || python=$one
done
if [ -n "$python" ] && timeout 60 "$TALLY" record -q -e cpu-clock -F 1999 -o tally.data -- "$python" -X perf program.py >out 2>&1; then
	rows --language-frames
	check "Python: a function's time is its SELF" eval 'grep -q " py::hot:" out && between "$(self "py::hot:[^ ]*")" 50 100'
else
	skip "Python: a function's time is its SELF" "no Python from 3.12 on that can -X perf"
fi
cat >program.js <<'P'
function hot(n) { let t = 0; for (let i = 0; i < n; i++) t += i * i % 7; return t; }
for (let i = 0; i < 60; i++) hot(200000);
P
if have node && timeout 60 "$TALLY" record -q -e cpu-clock -F 1999 -o tally.data -- node --perf-basic-prof --interpreted-frames-native-stack \
	--no-opt --no-sparkplug program.js >out 2>&1 && rows && grep -q "JS:.*hot" out; then
	rows --language-frames
	check "JavaScript, interpreted: a function's time is its SELF" eval 'between "$(self "JS:[^ ]*hot[^ ]* [^ ]*")" 35 100'
else
	skip "JavaScript, interpreted: a function's time is its SELF" "no node with interpreted frames"
fi
rm -f /tmp/perf-"$(ls | sed -n 's/^isolate.*-\([0-9]*\)-v8.log/\1/p' | head -n 1)".map
done_testing

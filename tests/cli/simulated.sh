#!/bin/bash
# stat, record and list --provider simulated, as users see them.  TAP; $TALLY is the binary,
# $GETPPID_LOOP N makes N getppid calls, $WORKLOAD is the program that cli/record.sh samples.
set -u
. "$(dirname "$0")/tap.sh"
chmod 755 "$scratch"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 XDG_CACHE_HOME=$scratch

# run EXPECTED_STATUS command…: stdout and stderr go to ./out
run() { expected=$1; shift; timeout 120 "$@" >out 2>&1 </dev/null; status=$?; [ "$status" = "$expected" ] || { echo "status $status" >>out; false; }; }
has() { grep -qF -- "$1" out; }
lacks() { ! grep -qF -- "$1" out; }
# json EXPRESSION over the documents (d: the last, e: its events by name)
json() { python3 -c '
import json,sys
docs=[json.loads(l) for l in open("out") if l.startswith("{")]
d=docs[-1]; e={x["name"]:x for x in d["events"]}
sys.exit(not eval("(" + sys.argv[1] + ")"))' "$1"; }
stat="$TALLY stat --provider simulated"
record="$TALLY record --provider simulated"

# --- what needs no tool --------------------------------------------------------------------------------------------
run 0 "$TALLY" list --provider simulated && has 'vsim/L2-load-misses/' && has 'exact: instructions executed' &&
	has 'estimate: ' && has 'the simulated PMU has no cycles' && lacks 'sched:sched_switch'
check "list shows the simulated events and their quality"
run 2 "$TALLY" stat --sim-cpu skylake true && has '--sim-cpu needs --provider simulated'
check "--sim-cpu without the provider is wrong use"
run 2 "$TALLY" stat --provider no-such true && has "no provider 'no-such'" && has simulated
check "for an unknown provider, the message lists the providers"

if ! $stat -e instructions true >out 2>&1 && grep -q 'there is no simulated PMU here' out; then
	run 1 $stat true && has 'hint: ' && run 1 $record true && has 'hint: '
	check "without the Valgrind tool, a message says so"
	skip "all other tests" "$(sed -n 's/.*there is no simulated PMU here: //p' out)"
	echo "1..$number"
	exit 0
fi

# --- stat ----------------------------------------------------------------------------------------------------------
run 0 $stat "$GETPPID_LOOP" 1000 && has '(exact, user)' && has '(model)' && has '(estimate)' && has 'elapsed, simulated' &&
	has 'CPU, simulated: ' && has '% of all branches' && lacks 'per cycle' && lacks GHz && lacks ' user$'
check "the default events are counted, each with its quality; est-cycles give no ratios"
run 0 $stat -d true && has L1-icache-load-misses && has iTLB-load-misses && has dTLB-store-misses
check "-d adds the other caches and TLBs"
run 0 $stat -j -r 3 -e instructions,branches,L1-dcache-load-misses "$GETPPID_LOOP" 1000 &&
	json 'd["provider"] == "simulated" and d["user_ns"] is None and "l1d" in d["machine"] and
	      all(x["sigma"] == 0 and x["source"] == "simulated" and x["user_only"] for x in d["events"]) and
	      e["instructions"]["quality"] == "exact" and e["L1-dcache-load-misses"]["quality"] == "model" and
	      e["instructions"]["value"] > 3000'
check "three runs give exactly the same counts; JSON has quality and machine"
run 0 $stat -j -M branch-mpki,l1d-miss-rate,ipc "$GETPPID_LOOP" 1000 && python3 -c '
import json
d = json.loads(open("out").read())
n = {e["name"].split(":")[0]: e["value"] for e in d["events"]}
m = {x["name"]: x for x in d["metrics"]}
assert m["branch-mpki"]["value"] == 1000 * n["branch-misses"] / n["instructions"], m
assert m["l1d-miss-rate"]["value"] == 100 * n["L1-dcache-load-misses"] / n["L1-dcache-loads"], m
assert m["branch-mpki"]["same_time"] and m["ipc"]["value"] is None and "no cycles" in m["ipc"]["note"], m
assert len(n) == len(d["events"]) == 4, n'
check "metrics are exact, and an event that several use is counted once"
run 0 $stat -r 2 -e instructions sh -c 'i=0; n=$(date +%N); n=${n#0}; while [ $i -lt 300 ] && [ $i -lt ${n%%[0-9]???} ]; do i=$((i+1)); done; :'
has 'the runs differ: instructions from' || has '0.00 %'
check "a message says that runs differ"
run 0 $stat -x, -e instructions,est-cycles true && has ',instructions,' && has ',simulated,exact' && has ',simulated,estimate'
check "CSV has source and quality"
run 0 $stat -e vsim/instructions/,vsim/loads/u,instructions:u,loads true && ! grep -q 'not ' out
check "the PMU's own names do too"
run 0 $stat -j -e '{instructions,branches}' -e vsim/instructions/ true &&
	json 'd["events"][0]["value"] == d["events"][2]["value"] and d["events"][0]["group"] == d["events"][1]["group"]'
check "groups are counted; an event that is given twice has the same count twice"
run 0 $stat -j -e 'vsim/instructions,counters=2/,vsim/loads,counters=2/,vsim/stores,counters=2/,vsim/branches,counters=2/' \
	"$GETPPID_LOOP" 3000000 && json 'all(x["scaled"] and x["value"] > 1000 and x["quality"] == "estimate"
							for x in d["events"])'
check "with fewer counters than events, events take turns, and scaled counts are estimates"
samples() { timeout 60 $record -F "$1" -o rate.data "$GETPPID_LOOP" 3000000 >out 2>&1 && sed -n 's/^tally: \([0-9,]*\) samples.*/\1/p' out | tr -d ,; }
[ "$(samples max)" -gt "$(($(samples 1000) * 2))" ]
check "-F max is a hundred thousand per simulated second"
run 0 $record -e instructions:S -o group.data true && has 'are not sampled' && lacks ' -a '
check "no message advises -a, which can't be simulated"
run 126 env TMPDIR=/nonexistent $stat -e instructions true && has '/nonexistent is not usable' && has 'hint: set TMPDIR' && lacks valgrind &&
	run 126 env TMPDIR=/nonexistent $record true && has '/nonexistent is not usable' &&
	run 126 sh -c 'ulimit -n 10; exec "$@"' sh $stat -e instructions true && has 'hint: raise ulimit -n' && lacks valgrind
check "if files of the tool are missing, it is not started"
group='{vsim/instructions,counters=1/,vsim/loads,counters=1/}'
run 0 $stat -e "$group" true && has '(exact, user)' && has 'does not fit into its group; {…}:W opens it separately' && lacks valgrind &&
	run 1 $record -e "$group" true && has 'its group has more events than the PMU has counters' && has 'hint: '
check "a group too large for the counters is refused before the command starts"
run 0 $stat --sim-cpu skylake -e L1-dcache-load-misses true && has 'CPU, simulated: skylake'
check "--sim-cpu takes a preset"
printf 'base = skylake\nname = tiny\nl1d = 4K 1-way\n' >tiny.cpu
run 0 $stat --sim-cpu ./tiny.cpu -e L1-dcache-load-misses true && has 'CPU, simulated: tiny: l1d 4K 1-way'
check "--sim-cpu takes a file"
printf 'base = skylake\nl2 = none\nllc = none\n' >bare.cpu
run 0 $stat --sim-cpu ./bare.cpu -d -j true &&
	json 'all(e[n]["state"] == "not-supported" and e[n]["note"] == "the simulated CPU has no LLC"
		  for n in ["LLC-loads", "LLC-load-misses", "LLC-stores", "LLC-store-misses"]) and
	      e["L1-dcache-load-misses"]["value"] > 0' &&
	run 0 $stat --sim-cpu ./bare.cpu -e cache-misses,vsim/L2-loads/ true && has 'no LLC' && has 'no L2' &&
	run 1 $record --sim-cpu ./bare.cpu -e LLC-load-misses true && has 'the simulated CPU has no LLC'
check "a cache level that the CPU lacks has no counts"
printf 'base = skylake\nl1d = 5 apples\n' >bad.cpu
run 1 $stat --sim-cpu ./bad.cpu true && has 'bad.cpu, line 2'
check "the message for a faulty CPU file points at the fault"
run 1 $stat --sim-cpu pentium9 true && has 'skylake'
check "for an unknown CPU, the message lists the CPUs"

cat >region.c <<'C'
#include <tally/roi.h>
__attribute__((noinline)) void inner(int n) { for (volatile int i = 0; i < n; i++); }
__attribute__((noinline)) void outer(int n) { inner(n); inner(n); }
int main(void) { inner(50000); outer(100000); tally_roi_begin(); inner(20000); tally_roi_end(); return 0; }
C
if cc -O1 -I"$SOURCE/include" -o region region.c 2>out; then
	value() { timeout 60 $stat -j -e stores "$@" ./region 2>out </dev/null; python3 -c '
import json; print(int(json.loads(open("out").read())["events"][0]["value"]) // 1000)'; }
	all=$(value) inner=$(value --toggle inner) outer=$(value --toggle outer) marked=$(value --region)
	echo "$all $inner $outer $marked" >out
	[ "$inner" = 270 ] && [ "$outer" = 220 ] && [ "$marked" = 20 ] && [ "$all" -gt 270 ]
	check "--toggle counts a function and marked regions, --region only the regions"
	run 0 $record --toggle outer -e stores -c 1000 -o region.data -- ./region && has '220 samples in'
	check "and samples are taken only there"
	run 0 $stat --toggle nosuch -j -e stores true && json 'd["events"][0]["state"] == "not-counted" and
		"no function" in d["events"][0]["note"] and any("nosuch" in n for n in d["notes"])' &&
		run 0 $stat --toggle nosuch true && has '<not counted>' && has "no function 'nosuch' ran" &&
		run 0 $stat --region -x, -e stores true && has 'not counted' && has 'never called tally_roi_begin' &&
		run 0 $record --toggle nosuch -e stores -o nosuch.data -- true && has 'sampled: no function of that name ran'
	check "for a region that never began, there is a reason instead of a figure"
	run 0 $stat --toggle inner --toggle nosuch -j -e stores ./region && json 'd["events"][0]["state"] == "counted" and
		any("only in regions" in n and "inner" in n and "nosuch" not in n for n in d["notes"])'
	check "the output names the counted region"
else
	skip "regions" "no compiler"
fi

cat >leap.c <<'C'
#include <setjmp.h>
static jmp_buf back;
__attribute__((noinline)) void count(int n) { for (volatile int i = 0; i < n; i++); }
__attribute__((noinline)) void leaper(int n) { count(n); longjmp(back, 1); }
int main(void) { if (!setjmp(back)) leaper(20000); count(500000); return 0; }
C
if cc -O1 -o leap leap.c 2>out; then
	run 0 $stat -j -e stores --toggle leaper ./leap && json 'int(d["events"][0]["value"]) // 1000 == 20'
	check "a longjmp out of a region ends it"
else
	skip "a region that is left by longjmp" "no compiler"
fi

cat >names.cc <<'C'
extern "C" __attribute__((noinline)) void count(long n) { for (volatile long i = 0; i < n; i++); }
namespace ns { template<class T> __attribute__((noinline)) T work(T n) { count(n); return n; } }
namespace { __attribute__((noinline)) long hidden(long n) { count(n); return n; } }
struct C {
	__attribute__((noinline)) long f(long n) { count(n); return n + (long)this; }
	__attribute__((noinline)) bool operator<(long n) { count(n); return n; }
	__attribute__((noinline)) long operator()(long n) { count(n); return n; }
};
extern "C" __attribute__((noinline)) long copied(long n) __asm__("copied.constprop.0");
extern "C" long copied(long n) { count(n); return n; }
int main()
{
	C c;
	long sum = ns::work<long>(20000) + ns::work<int>(30000) + hidden(40000) + c.f(50000) + (c < 60000) + c(70000) + copied(80000);
	return sum == 1;
}
C
if c++ -O1 -o names names.cc 2>out; then
	counts() { timeout 60 $stat -j -e stores --toggle "$1" ./names 2>out </dev/null; json "int(d['events'][0]['value']) // 1000 == $2"; }
	counts 'ns::work<long>' 20 && counts 'long ns::work<long>' 20 && counts 'ns::work<long>(long)' 20 && counts ns::work 50 &&
		counts _ZN2ns4workIiEET_S1_ 30 && counts '(anonymous namespace)::hidden' 40 && counts C::f 50 && counts _ZN1C1fEl 50 &&
		counts 'C::operator<' 60 && counts 'C::operator()' 70 && counts copied 80 && counts copied.constprop.0 80 &&
		run 0 $stat --toggle work -e stores ./names && has '<not counted>'
	check "--toggle accepts a function's name as in symbols and reports"
else
	skip "names of functions" "no C++ compiler"
fi

if clang -g -O1 -I"$SOURCE/include" -o by_clang region.c 2>out; then
	run 0 $stat -e instructions ./by_clang && lacks unhandled && lacks '=='
	check "Valgrind prints nothing about debug information that it can't read"
else
	skip "Valgrind prints nothing about debug information that it can't read" "no clang"
fi

# --- processes -------------------------------------------------------------------------------------------------------
$stat -j -e instructions "$GETPPID_LOOP" 200000 >out 2>&1; one=$(python3 -c 'import json; print(int(json.loads(open("out").read())["events"][0]["value"]))')
run 0 $stat -j -e instructions sh -c "$GETPPID_LOOP 200000; $GETPPID_LOOP 200000 & wait; exec $GETPPID_LOOP 200000" &&
	json "3 * $one <= e['instructions']['value'] <= 3.5 * $one"
check "children are counted across fork and exec ($one instructions each)"
run 0 $stat -j -i -e instructions sh -c "$GETPPID_LOOP 200000; :" && json "0 < e['instructions']['value'] < $one"
check "-i leaves children out"

# --- exit statuses -----------------------------------------------------------------------------------------------------
run 3 $stat -e instructions sh -c 'exit 3' && has instructions
check "the command's exit status is passed on"
run 143 $stat -e instructions sh -c 'kill -TERM $$' && has 'signal 15' && ! grep -q 'not counted' out
check "a signal gives 128 + n and the counts so far"
run 139 $stat -e instructions sh -c 'kill -SEGV $$' && ! grep -q 'not counted' out
check "SIGSEGV too"
run 0 $stat --timeout 3000 -e instructions sh -c 'while :; do :; done' && has 'stopped at the requested limit' && ! grep -q 'not counted' out
check "--timeout ends the command and prints the counts so far"
timeout 60 $stat -o closed.txt -e instructions sh -c 'ls / >listed && ls -d /' >out 2>&- </dev/null && [ -s listed ] && grep -q instructions closed.txt
check "a program without stderr runs as without simulation"
LD_PRELOAD=libm.so.6 timeout 60 $stat -o env.txt sh -c env >out 2>&1 </dev/null && has LD_PRELOAD=libm.so.6 && lacks VALGRIND && lacks vgpreload
check "the program sees its usual environment"
run 127 $stat no-such-command-anywhere && has "there is no command 'no-such-command-anywhere'" && lacks instructions
check "a command that is not found gives 127 and no table"
echo 'echo hello' >plain; chmod 644 plain
run 126 $stat ./plain && has 'no permission to execute'
check "a file that is not executable gives 126"
printf '#!/no/such/interpreter\n' >lost; chmod 755 lost
run 127 $stat ./lost && has 'interpreter'
check "a missing interpreter is named as such"

# --- refusals ------------------------------------------------------------------------------------------------------------
refused() { run 2 "$@" && has 'hint: '; }
refused $stat -p 1 && refused $stat -t 1 true && refused $stat -a && refused $stat -C 0 true && refused $stat &&
	refused $record -p 1 && has 'runs already'
check "running programs and whole CPUs are refused"
refused $stat -e cycles true && has 'no cycles' && has 'est-cycles' && refused $record -e cycles true && has 'no cycles'
check "cycles are refused, and the message names est-cycles"
refused $stat -e task-clock true && refused $stat -e r1a8 true && refused $stat -e instructions:k true &&
	refused $stat -e mem:0x1000 true && refused $stat -e LLC-prefetches true && refused $record -e page-faults true
check "so are events that the simulated CPU lacks"
cp "$(type -P true)" suid; chmod 4755 suid
run 126 $stat ./suid && has 'set-user-ID' && has 'hint: '
check "set-user-ID programs are refused before the start"
printf '\177ELF\1\1\1%060d' 0 >narrow; chmod 755 narrow
run 126 $stat ./narrow && has '32-bit'
check "32-bit programs are refused before the start"
for compiler in gcc clang; do
	if ! echo 'int main(void) { return 0; }' | $compiler -x c - -Wl,-z,x86-64-v4 -o v4_$compiler 2>out ||
		! readelf -n v4_$compiler 2>out | grep -q 'ISA needed:.*x86-64-v4'; then
		skip "programs that $compiler marked as AVX-512 are refused before the start" "no such $compiler, linker or readelf"
		continue
	fi
	run 126 $stat ./v4_$compiler && has 'AVX-512' && has 'hint: ' && lacks instructions && run 0 $stat sh -c "./v4_$compiler; true" &&
		has '1 program ran unsimulated'
	check "programs that $compiler marked as AVX-512 are refused before the start; started by another program, they run without simulation"
done
if echo 'int main(void) { __asm__ volatile(".byte 0x62, 0xf1, 0xfd, 0x48, 0xef, 0xc0"); /* vpxorq of zmm0 */ return 0; }' |
	gcc -x c - -o wide 2>out; then
	run 132 $stat -e instructions ./wide && has 'SIGILL: the simulated CPU has no AVX-512' && ! grep -q 'not counted' out
	check "unmarked AVX-512 ends with SIGILL, and a note says why"
else
	skip "unmarked AVX-512 ends with SIGILL, and a note says why" "no gcc"
fi

# --- record --------------------------------------------------------------------------------------------------------------
grouped() { sed -E ':again; s/^([0-9]+)([0-9]{3})/\1,\2/; t again' <<<"$1"; }
# Counted with the same bytes of environment as the recording.  ($_ names the started program, and
# the addresses of strings cost the dynamic linker ten instructions more or less.)
run 0 $stat -j -e instructions,branches "$GETPPID_LOOP" 50000
read -r instructions branches < <(python3 -c '
import json
e=json.loads(open("out").read())["events"]; print(*(int(x["value"]) for x in e))')
run 0 $record -e instructions -c 10000 -o one.data -- "$GETPPID_LOOP" 50000 && has "$(grouped $((instructions / 10000))) samples in"
check "one sample per 10,000 instructions: as many as $instructions counted instructions give"
run 0 $record -e instructions,branches -c 1000 -o two.data -- "$GETPPID_LOOP" 50000 &&
	has "$(grouped $((instructions / 1000 + branches / 1000))) samples in"
check "the same with two events"
run 0 "$TALLY" report -i one.data && has 'vsim/instructions/' && has getppid_loop
check "report shows the event and the command"
run 0 "$TALLY" script -i one.data && has 'vsim/instructions/' && has ' main+'
check "script shows call chains to main"
run 0 "$TALLY" fold -i one.data && has 'main' && run 0 "$TALLY" flamegraph -i one.data -o one.svg && grep -q '<svg' one.svg
check "fold and flamegraph read the recording"
if perf --version >out 2>&1; then
	run 0 perf script -i one.data && has 'vsim/instructions/' && has 'main+' && run 0 perf report --header-only -i one.data &&
		has 'simulated by tally' && has 'pmu mappings: vsim' && [ "$(perf script -i one.data -F ip,sym 2>/dev/null | grep -c '^$')" -ge 10 ]
	check "perf reads it, and its header has the simulated CPU"
else
	skip "perf reads it" "there is no perf"
fi
run 0 $record -o freq.data -F 5000 -e instructions -- "$GETPPID_LOOP" 300000 && ! grep -q ' 0 samples' out
check "-F samples in simulated time"
run 0 $record -o default.data -F 20000 -- "$GETPPID_LOOP" 300000 && has est-cycles && ! grep -q ' 0 samples' out
check "without -e, est-cycles are sampled, and a message calls them an estimate"
run 0 $record -o group.data -e '{instructions,loads,stores}:S' -c 5000 -- "$GETPPID_LOOP" 50000 && ! grep -q ' 0 samples' out &&
	run 0 "$TALLY" script -i group.data && has 'vsim/instructions/'
check "a group's leader samples, and its members are read"
run 0 $record -e instructions -c 20000 --no-call-graph -o flat.data -- true && run 0 "$TALLY" script -i flat.data && lacks '__libc_start_call_main+'
check "--no-call-graph records only addresses"
run 0 $record -e instructions -c 1000 -o tree.data -- sh -c "for i in 1 2 3 4 5 6 7 8 9 10; do $GETPPID_LOOP 10000 & done; wait" && lacks lost &&
	run 0 "$TALLY" report --sort comm -i tree.data && has getppid_loop
check "ten processes at once lose no samples"
run 0 $record -e instructions -c 10000 -o - -- "$GETPPID_LOOP" 20000
$record -q -e instructions -c 10000 -o - -- "$GETPPID_LOOP" 20000 2>/dev/null </dev/null | "$TALLY" script >out 2>&1 && has 'vsim/instructions/'
check "through a pipe"
run 5 $record -e instructions -c 100000 -o exit.data -- sh -c 'exit 5'
check "record passes the exit status on"
run 127 $record -e instructions -o none.data -- no-such-command-anywhere && [ ! -e none.data ]
check "a command that is not found leaves no file"
run 0 $record -e instructions -c 100000 --duration 3 -o long.data -- sh -c 'while :; do :; done' && ! grep -q ' 0 samples' out
check "--duration ends a recording"

# --- nothing stays -----------------------------------------------------------------------------------------------------
$stat -e instructions sh -c 'while :; do :; done' >out 2>&1 </dev/null & pid=$!
for i in $(seq 200); do plan=$(readlink /proc/$pid/fd/* | grep -m 1 tally-vsim-) && break; sleep 0.05; done
sleep 0.5; existed=$(ls "$plan"); kill -TERM $pid; wait $pid
[ -n "$existed" ] && [ ! -e "$plan" ] && has instructions
check "when tally is terminated, it prints what was counted and leaves no file"

if [ "$(id -u)" = 0 ] && $nobody "$TALLY" --help >out 2>&1; then
	run 0 $nobody $stat -e instructions true && has '(exact, user)'
	check "needs no privilege"
else
	skip "needs no privilege" "not root, or the build is closed to others"
fi

# --- where hardware events are missing ------------------------------------------------------------------------------------
if ! perf stat -e cycles true 2>&1 | grep -q 'not supported'; then
	skip "where hardware events are missing, messages name the provider" "they are there"
else
	run 0 "$TALLY" stat -e instructions true && has 'on a simulated CPU' && has 'slower' &&
		run 1 "$TALLY" record -e instructions -o none.data true && has '--provider simulated' &&
		run 0 "$TALLY" doctor && has 'simulated PMU' && has '--provider simulated'
	check "where hardware events are missing, messages name the provider and its cost"
fi
echo "1..$number"

#!/bin/bash
# SPEC G6: `tally report` counts the same as `perf report`, fits its terminal, and reports what it
# can't read.  TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export PAGER=cat NO_COLOR= HOME=$scratch # perf stores copies of recorded files there

record() { timeout 60 perf record --no-bpf-event -q -o perf.data "$@" >record.out 2>&1; }
report() { "$TALLY" report --stdio -i perf.data "$@" >out 2>err; }
perf_report() { perf report --stdio --no-group -g none --percent-limit 0 -t '|' -i perf.data "$@" 2>/dev/null >perf.txt; }

# same NAME [total]: compares the sums of both for ./perf.data.  perf's rows are symbols.
same() {
	perf_report --no-children -w 0,0,16 -F overhead,period,comm,dso,sym
	"$TALLY" report -j --no-inline --no-children -i perf.data >tally.json 2>err
	if "$here/compare_report.py" self perf.txt tally.json >out; then
		ok "$1: self ($(tail -n 1 out))"
	else
		not_ok "$1: self"
	fi
	[ $# -gt 1 ] || return
	perf_report --children -w 0,0,0,16 -F overhead_children,overhead,period,comm,dso,sym
	"$TALLY" report -j --no-inline --children -i perf.data >tally.json 2>err
	if "$here/compare_report.py" total perf.txt tally.json >out; then
		ok "$1: total ($(tail -n 1 out))"
	else
		not_ok "$1: total"
	fi
}

# compare NAME perf-record-arguments…; totals NAME … also compares totals
compare() { if record "${@:2}"; then same "$1"; else skip "$1" "perf can't record it"; fi; }
totals() { if record "${@:2}"; then same "$1" total; else skip "$1" "perf can't record it"; fi; }

if ! have perf || ! have python3 || ! perf record -q -o perf.data -e cpu-clock true >out 2>&1; then
	echo "1..0 # SKIP needs perf, which may record, and python3"
	exit 0
fi

QUERY='with recursive c(x) as (select 1 union all select x+1 from c where x<200000) select sum(x) from c'
compare "a clock" -e cpu-clock -F 999 "$WORKLOAD" spin
totals "stacks" -e cpu-clock -F 1999 -g "$WORKLOAD" spin
totals "recursion" -e cpu-clock -F 1999 -g "$WORKLOAD" recursion
totals "threads" -e cpu-clock -F 1999 -g "$WORKLOAD" threads
totals "several events" -e task-clock,context-switches,minor-faults -g "$WORKLOAD" threads
totals "page faults" -e page-faults -c 1 -g "$WORKLOAD" faults 0.02
compare "a group that its leader samples" -e '{cpu-clock,page-faults}:S' -F 999 "$WORKLOAD" faults
compare "tracepoints" -a -e sched:sched_switch,sched:sched_wakeup sh -c 'ls >/dev/null; sleep 0.1'
compare "forks and execs" -e cpu-clock -F 4999 sh -c 'for i in 1 2 3; do ls -l /usr/bin | sort | head -3; done'
if have sqlite3; then totals "sqlite" -e cpu-clock -F 999 -g sqlite3 :memory: "$QUERY"; else skip "sqlite" "no sqlite3"; fi
if have node; then
	compare "node with a map of its code" -e cpu-clock -F 999 node --perf-basic-prof -e 'let s=0; for (let i=0;i<2e7;i++) s+=Math.sqrt(i); console.log(s)'
else
	skip "node with a map of its code" "no node"
fi

# ---- rates of what happens seldom ----
# Two thousand faults at once, of which a rate samples about ten.
few() { record "$@" sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do ls / >/dev/null; done'; report; }
few -e cpu-clock,page-faults
check "a warning says that a high rate leaves out most hits, and gives the option that samples each" \
	eval '[ "$(grep -c "^a sampling rate leaves most of them out: record each with -c 1, or with -e page-faults/period=1/ " out)" = 1 ]'
few -e cpu-clock,page-faults/period=1/
check "… no such warning if each hit was sampled, or for clocks" eval 'grep -q "samples of page-faults" out && ! grep -q "a sampling rate leaves" out'

# ---- what is asked for ---------------------------------------------------------------------------------
record -e cpu-clock,page-faults -F 1999 -g "$WORKLOAD" threads
jq() { "$TALLY" report -j -i perf.data "${@:2}" >out 2>err && python3 -c 'import json,sys
d=json.load(open("out")); e=d["events"]; x=e[0]["entries"]
sys.exit(not eval(sys.argv[1]))' "$1"; }
check "JSON has its version and every event, and leaves nothing out" jq 'd["version"] == 1 and len(e) == 2 and not e[0]["hidden_entries"]'
check "the self periods add up to the event's period" jq 'all(sum(x["self"] for x in v["entries"]) == v["period"] for v in e)'
check "one event by name" jq 'len(e) == 1 and e[0]["event"].split(":")[0] == "page-faults"' -e page-faults
check "one event by number" jq 'len(e) == 1 and e[0]["event"].split(":")[0] == "page-faults"' -e 1
check "only one command" jq '{r["command"] for r in x} == {"beta worker"}' --comm 'beta worker'
check "--sort tid keeps threads apart" jq 'len(x) >= 3 and all("tid" in r and "function" not in r for r in x)' --sort tid --no-children
check "-n limits the rows, and the number of hidden ones is shown" jq 'len(x) == 3 and e[0]["hidden_entries"] > 0' -n 3
check "--percent-limit" jq 'all(100 * r["total"] >= 20 * e[0]["period"] for r in x)' --percent-limit 20
check "a caller tree goes from an entry to its callees" jq '[(b["depth"], b["function"]) for b in [r for r in x if r["function"] == "spin"][0]["tree"]][0] in ((0, "inner"), (0, "outer"))' --sort sym -g caller
check "a callee tree goes from an entry to its callers" jq '[b["function"] for b in [r for r in x if r["function"] == "inner"][0]["tree"]][0] in ("outer", "spin")' --sort sym -g callee
check "an unknown event is refused, and the message lists the events" eval '! report -e cycles && grep -q "page-faults" err'
check "an unknown sort key is wrong use" eval 'report --sort colour; [ $? = 2 ]'
"$TALLY" report --event none-such -i perf.data 2>err
check "for an event without samples, the message lists those that have some" eval 'grep -q "^hint: it has: " err && ! grep -q dummy err'
check "an invalid time is wrong use" eval 'report --time now,then; [ $? = 2 ]'
check "an invalid share of the time is wrong use" eval 'report --time 50%-40%; [ $? = 2 ]'

# ---- what a person sees --------------------------------------------------------------------------------
report && ! LC_ALL=C grep -q $'\033' out
check "without a terminal there are no colours" [ $? = 0 ]
if have script; then
	# Warnings use their full width: about a kernel that throttled, a stack that was deep.
	on_terminal() { script -qec "stty cols $1; TERM=xterm $3 \"\$TALLY\" report -i perf.data $2 </dev/null 2>told" /dev/null </dev/null 2>&1 |
		tr -d '\r' >out; }
	widest() { sed 's/\x1b\[[0-9;]*[mK]//g' out | python3 -c 'import sys; print(max(len(l.rstrip("\n")) for l in open(0, encoding="utf-8", errors="replace")))'; }
	for columns in 60 80 160; do
		on_terminal $columns "-g" "LC_ALL=C.UTF-8"
		check "output fits into $columns columns" [ "$(widest)" -le $columns ]
	done
	on_terminal 80 "-g" "LC_ALL=C"
	check "without UTF-8 the output is ASCII" python3 -c 'import sys; [open(name, encoding="ascii").read() for name in sys.argv[1:]]' out told
	on_terminal 80 "" "PAGER=false"
	check "a pager that is quit at once is no error" eval '! grep -q tally out && ! grep -v warning: told'
	on_terminal 80 "" "PAGER='echo paged; cat'" && grep -q paged out && grep -qa $'\033' out
	for term in dumb ''; do
		[ $? = 0 ] && on_terminal 80 "" "TERM='$term' PAGER='echo paged; cat'" && grep -q TOTAL out &&
			! grep -q paged out && ! grep -qa $'\033' out
	done
	check "a terminal without escapes gets neither pager nor colours" [ $? = 0 ]
	record -e cpu-clock -F 999 "$WORKLOAD" escapes
	on_terminal 160 "" ""
	check "a command's escape sequences don't reach the terminal" eval 'grep -q "red" out && ! grep -q $'"'\\033\\[31mred'"' out'
else
	for name in 60 80 160 ASCII pager dumb escapes; do skip "on a terminal: $name" "no script(1)"; done
fi

# ---- what was inlined ----------------------------------------------------------------------------------
cat >inlined.c <<'C'
static inline __attribute__((always_inline)) unsigned long step(unsigned long value)
{
	for (int i = 0; i < 1000; i++)
		value = value * 6364136223846793005u + 1;
	return value;
}
static inline __attribute__((always_inline)) unsigned long twice(unsigned long value) { return step(step(value)); }
__attribute__((noinline)) unsigned long outer(unsigned long value) { return twice(value) + 1; }
int main(void)
{
	unsigned long value = 1;
	for (int i = 0; i < 60000; i++)
		value = outer(value);
	return value == 42;
}
C
if have cc && cc -O2 -g inlined.c -o inlined 2>/dev/null && record -e cpu-clock -F 999 -g ./inlined; then
	check "call trees contain inlined functions, marked" eval 'report -g && grep -q "step (inlined)" out && grep -q "twice (inlined)" out'
	check "inlined functions have rows of their own, marked" eval 'report && grep -q "step (inlined)$" out'
	check "… SELF is theirs, and TOTAL of the functions around them" jq '(lambda step, twice, outer: step["self"] > .5 * e[0]["period"] and twice["self"] < .1 * e[0]["period"] and outer["total"] >= twice["total"] >= step["total"] >= step["self"] and step["kind"] == twice["kind"] == "inlined")(*[[r for r in x if r["function"] == f][0] for f in ("step", "twice", "outer")])'
	check "… --no-inline counts them for the symbol" jq '{r["function"] for r in x} & {"step", "twice"} == set() and [r for r in x if r["function"] == "outer"][0]["self"] > .5 * e[0]["period"]' --no-inline
	check "JSON gives inlined functions their kind" jq '[(b["function"], b["kind"]) for b in [r for r in x if r["function"] == "outer"][0]["tree"]][:2] == [("twice", "inlined"), ("step", "inlined")]' -g caller
	check "--no-inline leaves them out" eval 'report -g --no-inline && grep -q outer out && ! grep -q "step" out'
	check "folded stacks mark them with -a" eval '"$TALLY" fold -a perf.data >out && grep -q ";outer;twice_\[i\];step_\[i\] " out'
	check "fold --no-inline leaves them out" eval '"$TALLY" fold --no-inline perf.data >out && grep -q ";outer [0-9]*$" out && ! grep -q step out'
	check "a flame graph gives them their kind" eval '"$TALLY" flamegraph -o graph.svg perf.data 2>out && grep -q ">inlined<" graph.svg'
else
	skip "inlined functions" "no C compiler"
fi

# ---- what can't be read --------------------------------------------------------------------------------
cp /dev/null empty
check "for an empty file, the message says that it is empty" eval '! "$TALLY" report --stdio empty >out 2>&1 && grep -q "file is empty" out'
check "if there are no samples, the message says so" eval 'perf record -q -o perf.data -e cpu-clock -c 1000000000000 true >/dev/null 2>&1; ! report && grep -q "no samples" err'
record --per-thread -e cpu-clock -c 100000 "$WORKLOAD" spin 0.3 # mostly samples
head -c $(($(stat -c %s perf.data) * 3 / 4)) perf.data >cut
check "a truncated recording is used up to the end of the file" eval '"$TALLY" report --stdio cut >out 2>err && grep -q "damaged at offset" err && grep -q inner out'

# Truncated stacks are marked where they would look like roots, and counted; and the suggested size
# is enough.
cat >deep.c <<'C'
__attribute__((noinline)) long deep(long n)
{
	volatile char room[64] = { 0 };
	if (n)
		return deep(n - 1) + room[0] + 1;
	long sum = 0;
	for (volatile long i = 0; i < 60000000; i++)
		sum += i;
	return sum;
}
int main(void) { return deep(60) == 7; }
C
if have cc && cc -O1 -fomit-frame-pointer -fno-optimize-sibling-calls deep.c -o deep 2>out; then
	record -e cpu-clock -F 999 --call-graph dwarf,1024 ./deep
	"$TALLY" fold -i perf.data >folded 2>err
	check "the outermost frame of a cut stack is [truncated]" \
		eval 'grep -q "^deep;\[truncated\];deep;" folded && ! grep -q "^deep;deep" folded'
	"$TALLY" script -i perf.data >out 2>&1
	check "… but not in script" eval 'grep -q deep out && ! grep -qF "[truncated]" out'
	"$TALLY" script --max-stack 3 -i perf.data >out 2>&1
	check "… and no message tells of cut stacks if fewer frames are requested" eval 'grep -q deep out && ! grep -q "are incomplete" out'
	report -v
	check "-v counts the incomplete stacks by reason" grep -q 'incomplete stacks: [0-9,]* of [0-9,]*: the copies were too short; .*dwarf' err
	bytes=$(sed -n 's/.* stacks are incomplete: .*--call-graph dwarf,\([0-9]*\) would have sufficed$/\1/p' err)
	record -e cpu-clock -F 999 --call-graph "dwarf,${bytes:-8}" ./deep
	"$TALLY" fold -i perf.data >folded 2>err
	check "with the stack size that the message advises, stacks are complete (${bytes:-none})" \
		eval '[ "${bytes:-0}" -lt 20000 ] && grep -q ";main;deep;" folded && ! grep -q "are incomplete" err && ! grep -qF "[truncated]" folded'
	cp err out
	# The kernel's own chains end at its limit: deep() 61 times, main and its callers.
	cc -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls deep.c -o deep_fp
	"$TALLY" record -q -o full.data -e cpu-clock -F 999 --call-graph fp --max-stack 20 -- ./deep_fp >out 2>&1
	"$TALLY" fold -i full.data >folded 2>err
	check "a chain that the kernel cut at --max-stack is marked and counted" eval \
		'grep -q "^deep_fp;\[truncated\];deep;" folded && ! grep -q "^deep_fp;deep" folded &&
		grep -q "of the stacks are incomplete: the kernel keeps 20 frames; record with a larger --max-stack" err'
	# Inlined functions do not count, and the loader's debug file may be installed.
	"$TALLY" fold --no-inline --max-stack 4 -i full.data >folded 2>err
	check "… but not if fewer frames are requested" \
		eval 'grep -q "^deep_fp;deep;deep;deep;deep " folded && ! grep -qE "(;.*){5}|truncated" folded && ! grep -q "are incomplete" err'
	"$TALLY" flamegraph --no-inline --max-stack 4 -o full.svg -i full.data >out 2>&1 &&
		"$TALLY" export --no-inline --max-stack 4 -f speedscope -o full.json -i full.data >>out 2>&1
	check "… flame graphs and exports have that number of frames" eval '[ "$(grep -o "<title>deep (" full.svg | wc -l)" = 4 ] &&
		python3 -c "
import json
assert max(len(stack) for profile in json.load(open(\"full.json\"))[\"profiles\"] for stack in profile[\"samples\"]) == 4" >>out 2>&1'
	for shown in "script -G" "report --stdio --no-children"; do
		"$TALLY" $shown -i full.data >leaves 2>out
		check "… nor if only leaves are shown: $shown" eval 'test -s leaves && ! grep -q "are incomplete" out'
	done
	"$TALLY" record -q -o full.data -e cpu-clock -F 999 --call-graph fp --max-stack 120 -- ./deep_fp >out 2>&1
	"$TALLY" fold -i full.data >folded 2>err
	# Outside of main, code without frame pointers may make an endless chain: one such chain is
	# not ours.
	check "… a chain that ends before the limit is not marked" eval \
		'grep -q ";main;deep;" folded && ! grep -qF "[truncated];deep" folded && ! grep -q "kernel keeps" err'
	"$TALLY" record -q -o full.data -e cpu-clock --call-graph fp --max-stack 60000 -- true >out 2>&1
	check "a --max-stack above the kernel's limit is refused, and the message names the setting" \
		grep -q 'sysctl kernel.perf_event_max_stack=60000' out
	# Names that differ only at their ends.
	long=$(printf '%02000d' 0 | tr 0 x)
	cat >named.c <<'C'
long alpha(long n) __asm__(LONG "_alpha");
long omega(long n) __asm__(LONG "_omega");
#define WORK { volatile long s = 0; for (long i = 0; i < 100000000; i++) s += n; return s; }
__attribute__((noipa)) long alpha(long n) WORK
__attribute__((noipa)) long omega(long n) WORK
int main(void) { return alpha(1) + omega(2) == 7; }
C
	cc -O1 -DLONG="\"$long\"" named.c -o named && record -e cpu-clock -F 999 ./named
	"$TALLY" report --stdio -i perf.data >out 2>&1
	check "too long names lose their beginning or middle, not their end" eval 'grep -q "^ .* x.*\.\.\.x*_alpha$" out && grep -q "^ .* x.*\.\.\.x*_omega$" out'
	cat >hole.c <<'C'
__attribute__((noinline)) long inner(char *room)
{
	long sum = room != 0;
	for (volatile long i = 0; i < 60000000; i++)
		sum += i;
	return sum;
}
__attribute__((noinline)) long behind(void)
{
	char room[400000]; // deeper than what ran before main touched
	return inner(room) + 1;
}
int main(void) { return behind() == 7; }
C
	cc -O1 -fomit-frame-pointer -fno-optimize-sibling-calls hole.c -o hole
	# A recorder of another test (-a) that reads this stack makes its pages: then the copies are whole.
	for _ in 1 2 3 4 5; do
		record -e cpu-clock -F 999 --call-graph dwarf,8192 ./hole
		"$TALLY" fold -i perf.data >folded 2>err
		grep -q "exceed the largest copy" err || break
	done
	check "if the kernel copied less than requested, the message does not advise a larger copy" \
		eval 'grep -q "are incomplete: the kernel had no more to copy: exec .*never touched" err && ! grep -q "call-graph dwarf," err'
	# Stacks that tally unwinds while recording keep the mark, which perf does not see.  It may
	# not read the rest from the program's memory: when it would, depends on the machine's load.
	"$REFUSE_PERF" MEMORY "$TALLY" record -o cut.data -e cpu-clock -F 999 --call-graph dwarf,1024 -- ./deep >out 2>&1
	"$TALLY" fold -i cut.data >folded 2>err
	check "a stack that tally cut while recording is marked too" eval 'grep -q "^deep;\[truncated\];deep;" folded &&
		! grep -q "^deep;deep" folded && grep -q "^tally fold: warning: [0-9]*% of the stacks are incomplete: they were longer than their copies" err'
	# Except at the start and the end of the program, where perf names less of the C library.
	perf script --no-inline -i cut.data 2>/dev/null | grep -v '(/.*\.so' >theirs
	"$TALLY" script --no-inline -i cut.data 2>/dev/null | grep -v '(/.*\.so' >out
	check "… and perf reads it as usual" eval 'grep -q deep out && cmp theirs out'
else
	skip "cut stacks" "no C compiler"
fi

# Names from a file that has changed since are not used.
cp "$WORKLOAD" changing && record -N -e cpu-clock -F 999 ./changing spin
cp /bin/true changing
check "functions of a program that has changed since have no names, and a message says why" eval 'HOME=/nonexistent report && grep -q "changing is not the recorded file (it has another build-id)" err && ! grep -q inner out'
check "… and -v lists such files with their paths" eval 'HOME=/nonexistent report -v && grep -q "warning: not the recorded file: $PWD/changing has another build-id$" err'

if [ "$(id -u)" = 0 ] && have setpriv; then
	record -e cpu-clock -F 1999 -g "$WORKLOAD" faults
	chmod 755 . && chmod 644 perf.data && cp "$TALLY" tally && chmod 755 tally
	$nobody --bounding-set -all ./tally report --stdio -i perf.data >out 2>err
	if [ "$($nobody --bounding-set -all head -c 16 /proc/kallsyms)" = 0000000000000000 ]; then
		check "a message says that the kernel hides its symbols" grep -q 'kallsyms hides its addresses' err
	else
		skip "a message says that the kernel hides its symbols" "this kernel hides none"
	fi
else
	skip "a message says that the kernel hides its symbols" "needs root and setpriv"
fi
echo "1..$number"

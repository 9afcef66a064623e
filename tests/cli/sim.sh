#!/bin/bash
# tally sim.  TAP; $TALLY is the binary, $SOURCE the source tree.  BLESS=1 writes the expected
# outputs anew.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8
golden=$SOURCE/tests/cli/sim
examples=$SOURCE/examples

# run EXPECTED_STATUS command…: stdout and stderr go to ./out
run() {
	expected=$1; shift
	"$@" >out 2>&1; status=$?
	sed -i "/ASan doesn't fully support makecontext/d" out # the sanitizer's message about coroutines
	[ "$status" = "$expected" ] || { echo "status $status" >>out; false; }
}
has() { grep -qF -- "$1" out; }
# same NAME: ./out equals the blessed output
same() {
	[ -z "${BLESS:-}" ] || cp out "$golden/$1"
	diff -u "$golden/$1" out >difference || { cat difference >out; false; }
}
# scenario: the lines of standard input, after a machine, a mix and two functions
scenario() { { printf 'machine x86, 2 cpus\nmix m has ipc 1\nfunction f\nfunction g called by f\n'; cat; } >s.sim; }
# wrong WHAT LINE EXPECTED: s.sim is refused at that line
wrong() { run 2 timeout 20 "$TALLY" sim s.sim && has "line $2: $3" && has '^'; check "refused: $1"; }

# --- the examples ---------------------------------------------------------------------------------------------------
run 0 timeout 60 "$TALLY" sim "$examples/tour.sim" && same tour.txt
check "the tour gives the expected output"
cp out first
run 0 timeout 60 "$TALLY" sim "$examples/tour.sim" && cmp -s first out
check "two runs give the same bytes"
run 0 timeout 60 "$TALLY" sim --explain "$examples/tour.sim"
sed '/^ *[0-9.]* ms  /!d' out >told
grep -v '^ *[0-9.]* ms  ' out | cmp -s - first
check "--explain does not change the counts"
cp told out
for text in 'rotation of solver: ' 'pinned L1-dcache-loads of steady found no counter free' \
	'L1-dcache-loads is refused in its group of crowded' 'a task was born below parent' 'folded back, 3400000 so far' \
	'a record says that'; do
	has "$text"
	check "--explain: $text"
done
run 0 timeout 60 "$TALLY" sim "$examples/big_little.sim" && same big_little.txt
check "two core types"
# 400 and 200 million instructions, with more events than counters on the big cores
{
	printf 'machine big.LITTLE with 4 cpus, 1000 MHz, tick 1 ms, seed 11\nmix crunch has ipc 1.5, 180 branches\n'
	printf 'function main\ntask wanderer:\n'
	for _ in $(seq 40); do
		printf 'pin to cpu 0\nrun 10M instructions of crunch in main\n'
		printf 'pin to cpu 2\nrun 5M instructions of crunch in main\n'
	done
	printf 'end\ncount instructions'
	for event in 8 9 0xa 0xb 0xc 0xd 0xe; do printf ',armv8_cortex_a72/event=%s/' $event; done
	printf ' of wanderer\n'
} >types.sim
run 0 timeout 60 "$TALLY" sim types.sim && has 'on its cores' && awk '
	/a72.instructions/ { big = $1; shared = /scaled/ } /a53.instructions/ { little = $1; alone = !/scaled/ }
	END { gsub(/,/, "", big); gsub(/,/, "", little)
		exit !(shared && alone && big > 399e6 && big < 401e6 && little == 200000000) }' out
check "counts of a type of cores are scaled by the time on it"

# --- the language's description ----------------------------------------------------------------------------------------
awk '/^```sim/ { p = ++n; next } /^```/ { p = 0 } p { print >("doc" p ".sim") }' "$SOURCE/docs/sim.md"
for file in doc*.sim; do
	run 0 timeout 60 "$TALLY" sim "$file"
	check "docs/sim.md: $file"
done

# --- a recording --------------------------------------------------------------------------------------------------------
run 0 timeout 60 "$TALLY" sim -o a.data "$examples/stacks.sim" && has 'see '\''tally report -i a.data' && [ -s a.data.elf ]
check "a recording has names"
run 0 "$TALLY" report -i a.data && has 'scan_index' && has 'worker' && has 'copy_to_user [k]'
check "report names the functions"
run 0 "$TALLY" script -i a.data && has 'scan_index+0x' && has 'main+0x'
check "script shows names, also in stacks"
run 0 "$TALLY" fold a.data && has 'worker;main;serve;query;scan_index' && has 'worker;main;serve;query;sort_rows;compare_keys'
check "stacks are those of the scenario"
run 0 "$TALLY" flamegraph -o a.svg a.data && grep -q scan_index a.svg
check "a flame graph of it"
run 0 timeout 60 "$TALLY" sim "$examples/stacks.sim"
samples=$(sed -n 's/.* cycles, \([0-9,]*\) samples.*/\1/p' out | tr -d ,)
[ -n "$samples" ] && [ "$("$TALLY" script -i a.data 2>/dev/null | grep -c 'cycles:')" = "$samples" ]
check "the recording has as many samples as the summary says"
if perf version >/dev/null 2>&1; then
	run 0 perf report -i a.data --stdio && has scan_index
	check "perf report reads it"
	run 0 perf script -i a.data -F comm,tid,time,event,ip,sym && has scan_index && has copy_to_user
	check "perf script shows names, also of the kernel"
else
	skip "perf reads it" "there is no perf"
fi
scenario <<'END'
task t
	run 1K instructions of m in f
	mark "hello there" 42
end
sample scenario:mark,sched:sched_switch of t each hit
END
run 0 "$TALLY" sim -o t.data s.sim && run 0 "$TALLY" script -i t.data && has 'scenario:mark: hello there value=42'
check "the formats in the file decode tracepoints"
if perf version >/dev/null 2>&1; then
	run 0 perf script -i t.data && has 'hello there value=42'
	check "… also in perf"
else
	skip "tracepoints in perf" "there is no perf"
fi

# --- exactness -------------------------------------------------------------------------------------------------------------
scenario <<'END'
program leaf
	run 1003 instructions of m in g
end
program branch
	fork leaf 3 times
	thread leaf 2 times
	run 777 instructions of m in f
end
task root
	fork branch 4 times
	wait
end
count instructions:u of root with children
END
run 0 "$TALLY" sim s.sim && has ' 23,168 ' && has 'exactly what it did' && has '25 tasks'
check "an inherited tree of 25 tasks is counted exactly"
for model in x86 x86-8 arm64 arm64-32; do
	cat >s.sim <<-END
		machine $model, 1 cpus
		mix m has ipc 1.25, 50 cache-references, 7 cache-misses, 300 L1-dcache-loads, 20 L1-dcache-load-misses
		function f
		task t
			run 1M instructions of m in f
		end
		count cycles,cache-references,cache-misses,L1-dcache-loads of t
	END
	run 0 "$TALLY" sim s.sim && [ "$(grep -c 'exactly what it did' out)" = 4 ]
	check "on $model, the true count is that of the model's event"
done
scenario <<'END'
task t
	repeat 1000 times
		mark "x"
		run 100 instructions of m in f
	end
end
sample scenario:mark of t each hit into 1 page, read at the end
count scenario:mark of t
END
run 0 "$TALLY" sim s.sim && has '1,000 in all' && grep -qE '^ +1,000 +scenario:mark' out
check "kept and lost samples add up to all"
scenario <<'END'
task t
	run 20 ms of m in f
	run 20 ms of m in f
end
stop after 5 ms
count task-clock of t
END
run 0 "$TALLY" sim s.sim && has '5.00 msec  task-clock' && has '1 still ran'
check "a scenario stops at its time"

# --- what is refused --------------------------------------------------------------------------------------------------------
printf 'mix m has ipc 1\n' >s.sim; wrong "no machine" 1 "expected 'machine MODEL"
printf 'machine z80\n' >s.sim; wrong "no such model" 1 "expected a model: none, x86, "
scenario <<<'task t'; wrong "no end" 6 "expected 'end' of task 't'"
scenario <<<'count cycles of u'; wrong "an unknown task" 5 "there is no task or program 'u'"
printf 'task t\n  run 1K instructions of n in f\nend\n' | scenario; wrong "an unknown mix" 6 "expected the name of a mix"
printf 'task t\n  run fast\nend\n' | scenario; wrong "no number" 6 "expected how much"
printf 'task t\n  repeat 3 times\n  end\nend\n' | scenario; wrong "nothing to repeat" 7 "there is nothing to repeat"
printf 'task t\n  guest 1K instructions of m in f\nend\n' | scenario; wrong "no guests" 6 "guests need"
printf 'program p\n yield\nend\ncount cycles of p\n' | scenario; wrong "measuring a program" 8 "'p' is a program"
printf 'say "x\n' | scenario; wrong "an open quotation" 5 "the quotation mark has no other"
mkfifo pipe && run 2 timeout 10 "$TALLY" sim -o pipe "$examples/stacks.sim" && has 'pipe is not a regular file' && [ -p pipe ] && [ ! -e pipe.elf ]
check "-o with a device is refused, and no file is left beside it"
for stream in - /dev/stdout /dev/stderr; do
	run 2 timeout 10 "$TALLY" sim -o $stream "$examples/stacks.sim" && has "-o $stream: other output goes there" && [ ! -e ./- ] && [ ! -e ./-.elf ] && [ ! -e out.elf ]
	check "-o $stream is refused for a recording"
done
printf 'task t\n yield\nend\ncount cyclse of t\n' | scenario; run 2 "$TALLY" sim s.sim && has "line 8: there is no event 'cyclse'" && has "did you mean 'cycles'"
check "an event that the machine lacks"
printf 'task t\n yield\nend\ncount cycles of t\n' | scenario; run 2 "$TALLY" sim -o a.data s.sim && has "nothing is sampled" && has "hint:"
check "a scenario without events to record"
run 1 "$TALLY" sim no-such.sim && has "no-such.sim can't be read: No such file"
check "a missing scenario"
run 2 "$TALLY" sim && has "tour.sim"
check "no scenario given"
run 2 "$TALLY" sim a b && has "unexpected scenario"
check "two scenarios"
run 0 "$TALLY" sim --help && has '--explain'
check "help"

echo "1..$number"

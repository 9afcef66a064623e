#!/bin/bash
# JIT code has names: from a dump that is read directly (node --perf-prof), and from a perf map
# (node --perf-basic-prof), the same as perf's after `perf inject --jit`.  TAP; $TALLY is the
# binary.
set -u
. "$(dirname "$0")/tap.sh"
map=
trap 'rm -rf "$scratch"; [ -z "$map" ] || rm -f "$map"' EXIT
cd "$scratch" || exit 1
export HOME=$scratch

command -v node >/dev/null 2>&1 || skip_all "there is no node"

cat >work.js <<'JS'
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
class Shape { constructor(r) { this.r = r; } area() { let s = 0; for (let i = 0; i < 3000; i++) s += Math.sqrt(i * this.r); return s; } }
let total = 0;
const used = () => { const time = process.cpuUsage(); return time.user + time.system; }; // µs
const end = used() + 700000;
while (used() < end) { total += fib(20); total += new Shape(total % 10).area(); }
JS
# record NAME node-options…: records NAME.data with tally
record() {
	timeout 60 "$TALLY" record -o "$1.data" -e cpu-clock -F 500 -g -- node "${@:2}" work.js >out 2>&1 </dev/null
}
record dump --perf-prof || skip_all "tally can't record node here: $(head -c 100 out | tr '\n#' '  ')"

timeout 60 "$TALLY" report --stdio -i dump.data --percent-limit 0 >out 2>&1
check "with a dump, JIT code has names and an object of its own" grep -Eq 'jit\.dump +JS:fib ' out
check "there are no warnings" eval '! grep -q warning out'
timeout 60 "$TALLY" script --stdio -i dump.data >script 2>out
grep -E '^\s+[0-9a-f]+ JS:[*^~]fib ' script >out
check "an address in JIT code has an offset from its function's start" grep -Eq 'JS:[*^~]fib .*\+0x[0-9a-f]+ \(.*/jit-[0-9]+\.dump\)' out

# node damages the names of scripts: a line is in the script, or there is none.
timeout 60 "$TALLY" script --stdio -F +srcline -i dump.data 2>err |
	sed -En '/ JS:[^ ]+ .*work\.js:[0-9]+:[0-9]+\+0x/ { s/.*JS:([^ ]*) .*/\1/; h; n; s/^ */ /; H; x; s/\n//; p }' >lines
sort lines | uniq -c | sort -rn >out
check "source lines of JIT code are those of the script" eval '[ "$(grep -c " work.js:[1-5]$" lines)" -ge 100 ]'
check "… and the lines of fib are its own" test -z "$(grep "^.fib " lines | grep -v " work.js:1$")"

# perf's names in a recording of its own.
if ! timeout 60 perf record -q -k mono -e cpu-clock -F 500 -g -o perf.data node --perf-prof work.js >out 2>&1 </dev/null; then
	skip "names are the same as perf's after perf inject --jit" "perf can't record it"
	skip "a warning says that the clock is the wrong one" "perf can't record it"
else
	# The dump may lack some addresses, so this compares only names, sample by sample.
	names() { grep -oE '^node.* [0-9]+\.[0-9]+:|JS:.*\+0x[0-9a-f]+ ' "$1" |
		sed -E 's/^node[^:]* ([0-9]+\.[0-9]+):/\1/; s/ $//'; }
	timeout 100 perf inject --jit -i perf.data -o injected.data >out 2>&1
	timeout 100 perf script --no-inline -i injected.data >perf.txt 2>out
	timeout 100 "$TALLY" script --stdio --no-inline -i perf.data >tally.txt 2>out
	names perf.txt >perf.names
	names tally.txt >tally.names
	diff perf.names tally.names >out
	check "names are the same as perf's after perf inject --jit ($(grep -c JS: tally.names) frames)" \
		eval 'grep -q JS: tally.names && cmp -s perf.names tally.names'

	timeout 60 perf record -q -e cpu-clock -F 500 -g -o other.data node --perf-prof work.js >out 2>&1 </dev/null
	timeout 60 "$TALLY" report --stdio -i other.data >out 2>&1
	check "a warning says that the clock is the wrong one, but names are there" \
		eval 'grep -q "needs -k mono" out && grep -q "JS:fib" out'
fi

record map --perf-basic-prof
timeout 60 "$TALLY" report --stdio -i map.data --percent-limit 0 >out 2>&1
pid=$(timeout 60 "$TALLY" script -F ip,sym,dso -i map.data 2>/dev/null | grep -oEm 1 'perf-[0-9]+\.map' | tr -dc 0-9)
map=/tmp/perf-${pid:-none}.map
check "a perf map names JIT code" grep -Eq 'perf\.map +JS:fib ' out
rm -f "$map"
timeout 60 "$TALLY" report --stdio -i map.data --percent-limit 0 >out 2>&1
check "the recording keeps the names when the map is gone" grep -Eq 'perf\.map +JS:fib ' out

# One function is one row, however many processes ran it, and in which tiers.
cat >cluster.js <<'JS'
const cluster = require('cluster');
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; }
const used = () => { const time = process.cpuUsage(); return time.user + time.system; }; // µs
const start = how => { cluster.setupPrimary({ execArgv: process.execArgv.concat(how) }); cluster.fork(); };
if (cluster.isPrimary) { start([]); start(['--no-opt']); }
else { const end = used() + 500000; while (used() < end) hot(2000); process.exit(0); }
JS
for run in old new; do
	timeout 60 "$TALLY" record -q -o $run.data -e cpu-clock -F 500 -g -- node --perf-basic-prof --interpreted-frames-native-stack --no-turbo-inlining cluster.js >out 2>&1 </dev/null
done
timeout 60 "$TALLY" report --stdio -i old.data --percent-limit 0 >out 2>&1
check "a function of two processes and several tiers is one row" test "$(grep -c ' JS:[~^*+]*hot ' out)" = 1
check "... which has its whole share" eval 'awk "/ JS:hot / { exit !(\$1 > 50) }" out'
timeout 60 "$TALLY" diff -n 10000 --fail-if "JS:hot $scratch/cluster.js:2:13 > +30" old.data new.data >out 2>err
check "diff compares two runs of two processes"
check "... and matches their functions" grep -Eq '^ *[0-9.]+ +[0-9.]+ .*perf\.map +JS:hot ' out
timeout 60 "$TALLY" report --stdio -i old.data --percent-limit 0 --sort pid,sym >out 2>&1
check "--sort pid tells the processes apart" test "$(grep -c ' JS:hot ' out)" -ge 2
timeout 60 "$TALLY" report --stdio -i old.data --percent-limit 0 --full-names >out 2>&1
check "--full-names tells the tiers apart" eval '[ "$(grep -c " JS:[~^*+]hot " out)" -ge 2 ] && ! grep -q " JS:hot " out'
timeout 60 "$TALLY" script --stdio -i old.data >out 2>err
check "script shows the tiers and the processes' maps as perf does" grep -Eq ' JS:[~^*+]hot .* \(/tmp/perf-[0-9]+\.map\)$' out
timeout 60 "$TALLY" fold --full-names out >full 2>err
timeout 60 "$TALLY" fold out >brief 2>>err
check "... and fold merges the tiers of such text, unless full names are wanted" \
	eval 'grep -q ";JS:[~^*+]hot " full && grep -q ";JS:hot " brief && ! grep -q ";JS:[~^*+]hot " brief'
grep -oE '/tmp/perf-[0-9]+\.map' out | sort -u | xargs -r rm -f

# Stack copies, unwound while recording: JIT code has no rules, so frame pointers must do.
timeout 60 "$TALLY" record -o stacks.data -e cpu-clock -F 500 --call-graph dwarf -- node --perf-basic-prof work.js >out 2>&1 </dev/null
timeout 60 "$TALLY" script --stdio -i stacks.data >script 2>out
awk -v RS= '/JS:[*^~]?fib / { jit++; if (/__libc_start_main|_start\+/) whole++ }
	END { printf "%d of %d stacks with JIT frames go on to main\n", whole, jit; exit !(jit > 20 && whole >= 0.95 * jit) }' script >out
whole=$?
check "unwound stacks go through JIT frames to main" test $whole = 0

# tally says once how to get names, where people look: at the recording's end, in a report's head,
# before a flame graph.
way='node --perf-basic-prof --interpreted-frames-native-stack'
record plain
check "for JIT code without names, the end of the recording tells the options that give names" \
	test "$(grep -c "^hint: JIT code of node has no names: start it with $way$" out)" = 1
timeout 60 "$TALLY" report --stdio -i plain.data >out 2>err
check "... the report's head does too" eval '[ "$(head -n 3 out | grep -c "^hint: [0-9]*% of the samples .*$way$")" = 1 ]'
check "... and no other part of the report" eval '[ "$(cat out err | grep -c hint:)" = 1 ]'
timeout 60 "$TALLY" flamegraph -i plain.data -o plain.svg >out 2>&1
check "... and flamegraph" grep -q "$way" out
timeout 60 "$TALLY" diff plain.data plain.data >out 2>err
check "... and diff, once although it reads two" test "$(grep -c "^hint: .*$way$" err)" = 1
record asked --perf-basic-prof --interpreted-frames-native-stack
check "... if the code has names, nothing is said" eval '! grep -q hint: out'
timeout 60 "$TALLY" fold -i asked.data >out 2>err
check "with these options, interpreted functions have names" grep -Eq ";JS: .*work.js:1:1;" out

# A script's own code may only call the runtime.  It is compiled at once: otherwise the machine's
# load decides when the interpreter hands over to compiled code, and so the callers.
cat >work.js <<'JS'
const used = () => { const time = process.cpuUsage(); return time.user + time.system; }; // µs
function work() { return Array.from({ length: 2000 }, (_, i) => "" + (i * 7919) % 2000).sort().length; }
for (const end = used() + 700000; used() < end;) work();
JS
record calls --always-sparkplug
timeout 60 "$TALLY" report --stdio -i calls.data --dso node >out 2>&1
check "JIT code without names is also told of if all samples are in functions that it called" \
	grep -Eq "^hint: ([5-9][0-9]|100)% .* without names, or in functions that it called: .*$way" out
sed -i s/700000/5000000/ work.js
node --always-sparkplug work.js & pid=$!
timeout 60 "$TALLY" top --stdio -g -p $pid -d 500ms -n 4 >out 2>&1
kill $pid
wait $pid 2>/dev/null
check "... top says it once, while it runs" test "$(grep -c "^hint: code without names: $way$" out)" = 1
done_testing

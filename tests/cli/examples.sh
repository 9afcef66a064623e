#!/bin/bash
# The examples do what they promise.  TAP; $TALLY is the binary, $EXAMPLES the directory of the
# examples; $REFUSE_PERF runs a program under a seccomp filter.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8

# run EXPECTED_STATUS command…: stdout and stderr go to ./out
run() { expected=$1; shift; "$@" >out 2>&1; status=$?; [ "$status" = "$expected" ] || { echo "status $status" >>out; false; }; }
# weight FUNCTION: number of samples in the function, below the wrapper
weight() { awk -v f="$1" '$0 ~ ";run_round;" f "[; ]" { sum += $NF } END { print sum + 0 }' folded; }

# --- each header of the libraries has an example; record.h and perf_event.h are parts of others ---
for header in "$SOURCE"/include/tally/*.h; do
	grep -qF "tally/${header##*/}" "$SOURCE"/examples/*.[ch] "$SOURCE"/src/engine/hosts/skeleton/*.c "$SOURCE"/include/tally/ring.h \
		"$SOURCE"/include/tally/record.h || echo "${header##*/}"
done >out
[ ! -s out ]
check "each public header has an example"

# --- hotspots ----------------------------------------------------------------------------------------------------
run 0 timeout 60 "$EXAMPLES/hotspots" 1
check "hotspots ends after the given number of rounds"

if "$TALLY" record -o data -e cpu-clock -F 999 -- "$EXAMPLES/hotspots" 8 >out 2>&1; then
	"$TALLY" fold --weight samples -i data >folded 2>>out
	for function in integer_loop walk_columns walk_rows fibonacci; do
		echo "$function $(weight $function)" >>out
		[ "$(weight $function)" -gt 0 ]
		check "$function is called by its wrapper"
	done
	[ "$(weight walk_columns)" -gt "$(weight walk_rows)" ]
	check "walking down columns costs more than walking along rows"
	grep -qE ';worker;run_round;(fibonacci;){5}' folded
	check "call chains show the depth of the recursion"
	[ "$(grep -c ';worker;run_round;' folded)" -gt 4 ] && ! grep 'walk_\|integer_loop\|fibonacci' folded | grep -v ';worker;run_round;' >>out
	check "all work is in the thread, below the wrapper"
else
	skip "hotspots in a recording" "no sampling here: $(head -1 out)"
fi

"$TALLY" stat -j -e task-clock --timeout 1200 -- "$EXAMPLES/hotspots" 2>out
python3 -c '
import json
d = json.loads(open("out").readlines()[-1])
clock = d["events"][0]["value"]
assert 0 < clock < 0.9 * d["elapsed_ns"], (clock, d["elapsed_ns"])' 2>>out
check "without arguments hotspots works in steps of whole seconds until it is stopped"

# --- self_count --------------------------------------------------------------------------------------------------
if "$TALLY" stat -j -e instructions:u true 2>&1 | grep -q '"state":"counted"'; then
	event=instructions
else
	event=task-clock
fi
if "$TALLY" stat -j -e task-clock:u true 2>&1 | grep -q '"source":"kernel"'; then
	start=$(date +%s%N)
	"$EXAMPLES/self_count" 2>errors | head -6 >out
	took=$(($(date +%s%N) - start))
	[ "$(grep -cE "^$event=[0-9]+$" out)" = 6 ]
	check "self_count prints $event=N"
	cut -d= -f2 out | sort -nc 2>>out && [ "$(head -1 out | cut -d= -f2)" -gt 0 ]
	check "its counts never decrease"
	[ $took -ge 500000000 ]
	check "it prints every 100 ms"
	if [ $event = instructions ]; then
		[ ! -s errors ]
		check "it prints no explanation if all is counted"
	else
		cat errors >>out
		grep -q "^self_count: 'instructions:u' can't be counted: " errors
		check "it says why it does not count instructions"
	fi
	run 1 "$REFUSE_PERF" EPERM "$EXAMPLES/self_count" && [ "$(grep -c '^self_count: ' out)" = 2 ]
	check "if nothing can be counted, it says so and fails"
else
	skip "self_count" "the kernel refuses perf events"
fi

# --- libtally's other examples -----------------------------------------------------------------------------------
if "$TALLY" stat -j -e task-clock:u true 2>&1 | grep -q '"source":"kernel"'; then
	run 0 "$EXAMPLES/ratio" && grep -qE '^ratio=[0-9.]+ ' out && [ "$(grep -cE '^[a-z:-]+=[1-9][0-9]*$' out)" = 2 ]
	check "ratio counts two events as a group"
	run 0 "$EXAMPLES/self_sample" && eval "$(grep -oE '[a-z]+=[0-9]+' out)" &&
		[ "$heavy" -gt $((4 * light)) ] && [ "$light" -gt 0 ] && [ "$lost" = 0 ]
	check "self_sample finds that one function takes nine times as long as another"
	run 1 "$REFUSE_PERF" EPERM "$EXAMPLES/ratio" && grep -q '^ratio: ' out
	check "ratio says why it can't count"
	run 1 "$REFUSE_PERF" EPERM "$EXAMPLES/self_sample" && grep -q '^self_sample: ' out
	check "self_sample says why it can't sample"
	run 0 "$EXAMPLES/self_signal" && [ "$(awk -F'[= ]' '/^thread=/ && $4 > 180 && $4 + $6 == 200' out | wc -l)" = 2 ]
	check "self_signal's threads get a signal for each of 200 samples"
	run 1 "$REFUSE_PERF" EPERM "$EXAMPLES/self_signal" && grep -q '^self_signal: ' out
	check "self_signal says why it can't sample"
	if nm -D "$LIBTALLY" | grep -q '__asan_\|__tsan_'; then
		skip "self_sample.py" "Python has no sanitizer"
	else
		run 0 env LIBTALLY="$LIBTALLY" python3 "$SOURCE/examples/self_sample.py" &&
			head -1 out | grep -qE '^ *[0-9.]+%  heavy$' && grep -qE '^samples=[0-9]{2,} lost=0$' out
		check "self_sample.py finds its hottest function"
		run 1 "$REFUSE_PERF" EPERM env LIBTALLY="$LIBTALLY" python3 "$SOURCE/examples/self_sample.py" &&
			grep -q '^self_sample.py: ' out && ! grep -q Traceback out
		check "self_sample.py says why it can't sample"
	fi
else
	skip "ratio, self_sample, self_signal" "the kernel refuses perf events"
fi

# --- a region of interest, on the simulated CPU
if "$TALLY" stat --provider simulated -e instructions true >out 2>&1; then
	instructions() { "$TALLY" stat --provider simulated "$@" -x, -e instructions -- "$EXAMPLES/region_of_interest" 2>&1 >printed | sed -n 's/^\([0-9]*\),.*/\1/p'; }
	whole=$(instructions) part=$(instructions --region)
	echo "whole $whole, part $part" >out
	[ -s printed ] && [ "$part" -gt 20000 ] && [ "$((5 * part))" -lt "$whole" ]
	check "of region_of_interest, --region counts the look-ups only"
else
	skip "region_of_interest" "no simulated PMU: $(head -1 out)"
fi
# --- regions: they work without perf events, too
# json_says EXPRESSION: of the report in ./report.json, as `report`, with its regions by name
json_says() {
	python3 -c "import json; report = json.load(open('report.json')); names = {r['name']: r for r in report['regions']}
assert $1, report"
}
for refuse in "" "$REFUSE_PERF EPERM"; do
	run 0 env TALLY_REPORT=json:report.json $refuse "$EXAMPLES/regions" && eval "$(grep -oE '^[a-z_]+=[0-9]+' out)" &&
		[ "$words" -gt 300000 ] && [ "$sorts" = 20 ] && [ "$median_ns" -gt 1000 ] &&
		json_says "names['sort']['calls'] == 20 and sorted(names) == ['count', 'make', 'sort']" 2>>out &&
		json_says "all(n['events'][0]['self'] <= n['events'][0]['total'] for n in names.values())" 2>>out
	check "regions measures its parts${refuse:+, where perf events are refused}"
done
json_says "'cpu-time' in [e['name'] for e in report['events']] and 'task-clock' in report['missing']" 2>out
check "… by the clocks alone, and says what is missing"
if [ -x "$EXAMPLES/region_scope" ]; then
	run 0 env TALLY_REPORT=json:report.json "$EXAMPLES/region_scope" && grep -q '^parsed=1000$' out &&
		json_says "names['parse']['open'] == 0 and not report['mistakes']['begins_without_end']" 2>>out
	check "region_scope's regions end by exceptions"
else
	skip "region_scope" "no C++ compiler"
fi
if ! nm -D "$LIBTALLY" | grep -q '__asan_\|__tsan_'; then
	run 0 env LIBTALLY="$LIBTALLY" TALLY_REPORT=table python3 "$SOURCE/examples/regions.py" &&
		grep -q '^calls=100$' out && grep -q '^self_and_inside=True$' out && grep -q '^sort: 100 calls$' out &&
		grep -q ', 2 threads:$' out
	check "regions.py measures Python by ctypes"
else
	skip "regions.py" "Python has no sanitizer"
fi
if [ -s data ]; then
	"$TALLY" report -i data --no-children --sort dso,sym --percent-limit 0 -j >report 2>/dev/null
	run 0 "$EXAMPLES/top_functions" data && python3 -c '
import json
rows = json.load(open("report"))["events"][0]["entries"]
total = sum(row["self_samples"] for row in rows)
shown = [line.split() for line in open("out")]
wanted = sorted(("%.2f%%" % (100 * row["self_samples"] / total) for row in rows), key=lambda p: -float(p[:-1]))
assert [line[0] for line in shown] == wanted[:len(shown)], (shown, wanted[:10])' 2>>out
	check "top_functions and report give each function the same number of samples"
	run 1 "$EXAMPLES/top_functions" /nowhere && grep -q '/nowhere' out
	check "top_functions names the missing recording"
else
	skip "top_functions" "there is no recording"
fi

echo "1..$number"

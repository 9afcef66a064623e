#!/bin/bash
# What `tally report` can be sorted by besides commands, objects and functions, and the errors of its percentages.
# TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export PAGER=cat NO_COLOR= HOME=$scratch LC_ALL=C.UTF-8

if ! have perf || ! have python3 || ! perf record -q -o perf.data -e cpu-clock -c 1000000 -g "$WORKLOAD" spin >out 2>&1; then
	echo "1..0 # SKIP needs perf, which may record, and python3"
	exit 0
fi

# ---- errors ---------------------------------------------------------------------------------------------
# All periods are equal here: the errors are Wilson's for so many of so many samples.
cat >errors.py <<'P'
import json, sys
for event in json.load(sys.stdin)["events"]:
    n, z = event["samples"], 1.959964
    for entry in event["entries"]:
        for which in "self", "total":
            p = entry[which + "_samples"] / n
            centre, half = (p + z*z/2/n) / (1 + z*z/n), z / (1 + z*z/n) * (p*(1-p)/n + z*z/4/n/n) ** .5
            expected = 100 * max(p - max(centre - half, 0), min(centre + half, 1) - p)
            got = entry[which + "_error"]
            if abs(got - expected) > 0.002:
                sys.exit("%s of %s: %s, and %s was expected" % (which, entry["function"], got, expected))
P
check "the errors in JSON are Wilson's" eval '"$TALLY" report -j -i perf.data >json 2>err && python3 errors.py <json >out 2>&1'
"$TALLY" report --stdio -i perf.data >plain 2>err
"$TALLY" report --stdio --error -i perf.data >out 2>err
check "the head tells the error at 10 %" grep -Eq '^[0-9,]+ samples of cpu-clock.* \(±[0-9.]+ at 10%\) over' out
check "--error has columns of errors" eval 'grep -Eq "^ +TOTAL +± +SELF +±  OBJECT" out && ! grep -q "SELF *±" plain'
check "… that are JSON's, rounded" python3 - <<'P'
import json
entry = json.load(open("json"))["events"][0]["entries"]
entry = max(entry, key=lambda e: e["self"])
rows = [line.split() for line in open("out") if "%" in line and line.split()[0].endswith("%")]
assert any(abs(float(r[3]) - entry["self_error"]) < 0.006 and r[-1] == entry["function"] for r in rows), (entry, rows)
P
LC_ALL=C "$TALLY" report --stdio --error -i perf.data >out 2>err
check "without UTF-8 they are +-" eval 'grep -q "(+-.* at 10%)" out && ! LC_ALL=C grep -q "[^ -~	]" out'

# ---- line for line as perf has them ---------------------------------------------------------------------
cat >same.py <<'P'
import re, sys
def rows(path, theirs):
    found = []
    for line in open(path):
        if not re.match(r" *[0-9.]+%", line):
            continue
        cells = re.split(r"  +", line.strip())
        mark = (r"^\[[.kHgu]\] +", "") if theirs else (r" \[k\]$", "")
        found.append([re.sub(*mark, cell) for cell in cells])
    return sorted(found)
theirs, ours = rows("perf.txt", True), rows("tally.txt", False)
if theirs != ours or not ours:
    sys.exit("perf's %d rows, tally's %d\nonly perf: %s\nonly tally: %s" % (len(theirs), len(ours),
             [row for row in theirs if row not in ours][:8], [row for row in ours if row not in theirs][:8]))
P
# same FILE KEYS OPTION…: perf's table is tally's; PERF_KEYS are keys by perf's names, SED makes perf's cells tally's.
same() {
	timeout 60 perf report --stdio --no-children -g none --sort "${PERF_KEYS:-$2}" "${@:3}" -i "$1" 2>out |
		sed -E "${SED:-}" >perf.txt
	timeout 60 "$TALLY" report --stdio --no-children --percent-limit 0 --sort "$2" "${@:3}" -i "$1" >tally.txt 2>out &&
		python3 same.py >out 2>&1
}
for keys in sym srcline sym,srcline dso,sym; do
	check "as perf: $keys" same perf.data $keys
done
SED='s/(%) +$/\1  [unknown]/' check "as perf: srcfile" same perf.data srcfile
check "… with totals the lines of callers have theirs" eval '"$TALLY" report --stdio --children -s sym,srcline -i perf.data >out 2>err && grep -Eq " 0.00%  .*record_workload.c:[0-9]+$" out'
check "… and call trees are of functions" eval '"$TALLY" report --stdio --children -g -s srcline -i perf.data >out 2>err && grep -Eq "%  record_workload.c:[0-9]+$" out && grep -Eq "─ 100.00% spin$" out'
"$TALLY" report --sort srcline --no-inline -i perf.data >out 2>&1
check "lines that are not read can't be sorted by" test $? = 2
"$TALLY" report --sort nonsense -i perf.data >out 2>&1
exit_status=$?
check "a key that nobody knows" eval 'test $exit_status = 2 && grep -q "none of comm, .*srcline" out'
echo "1..$number"

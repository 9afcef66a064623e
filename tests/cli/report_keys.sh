#!/bin/bash
# The keys that `tally report` sorts by besides commands, objects and functions, and the errors of
# its percentages.  TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c.
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
# All periods are equal here, so the errors are Wilson's for the numbers of samples.
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
check "the errors in JSON are those of Wilson's interval" eval '"$TALLY" report -j -i perf.data >json 2>err && python3 errors.py <json >out 2>&1'
"$TALLY" report --stdio -i perf.data >plain 2>err
"$TALLY" report --stdio --error -i perf.data >out 2>err
check "the head gives the error of a share of 10 %" grep -Eq '^[0-9,]+ samples of cpu-clock.* \(10% may be [0-9.]+ to [0-9.]+%\) over' out
check "--error adds columns of errors" eval 'grep -Eq "^ +TOTAL +± +SELF +±  OBJECT" out && ! grep -q "SELF *±" plain'
check "… with JSON's values, rounded" python3 - <<'P'
import json
entry = json.load(open("json"))["events"][0]["entries"]
entry = max(entry, key=lambda e: e["self"])
rows = [line.split() for line in open("out") if "%" in line and line.split()[0].endswith("%")]
assert any(abs(float(r[3]) - entry["self_error"]) < 0.006 and r[-1] == entry["function"] for r in rows), (entry, rows)
P
LC_ALL=C "$TALLY" report --stdio --error -i perf.data >out 2>err
check "without UTF-8 ± is written as +-" eval 'grep -q "SELF *+-" out && ! LC_ALL=C grep -q "[^ -~	]" out'

# ---- line for line as perf has them ---------------------------------------------------------------------
cat >same.py <<'P'
import collections, re, sys
# perf lists code without a symbol by address, tally by object; if addr2line fails, perf has no line.
def cell(text, theirs):
    text = re.sub(r"^\[[.kHgu]\] +", "", text) if theirs else re.sub(r" \[k\]$", "", text)
    if re.match(r"0x[0-9a-f]{16}$|\[[^\]]*\]$|\.plt(\.got|\.sec)?$", text):
        return "nameless"
    if "srcline" in sys.argv[1] and ":" not in text:
        text = text[:20] # perf sometimes cuts text without a line
    return "-" if text == "?" else re.sub("@(?!plt).*", "", text)
def rows(path, total, theirs):
    found, columns = collections.Counter(), None
    for line in open(path):
        cells = [text.strip() for text in (line.split("|") if theirs else re.split(r"  +", line.strip()))]
        if theirs and line.startswith("# Overhead"): # unrequested columns
            columns = [i for i, title in enumerate(cells) if not re.match("# Overhead|IPC", title)]
        if re.match(r" *[0-9.]+%", line):
            cells = [cells[0]] + ([cells[i] for i in columns] if theirs else cells[1:])
            found[tuple(cell(text, theirs) for text in cells[1:])] += round(float(cells[0][:-1]) * total / 100)
    return found
total = int(re.search(r"# Samples: (\d+) ", open("perf.txt").read())[1])
theirs, ours = rows("perf.txt", total, True), rows("tally.txt", total, False)
for row in [row for row in theirs if any(re.search(r"\(null\)|:0$|@plt|^_init\+|\[[0-9a-f]+\]?$", text) for text in row)]: # unknown to addr2line
    del theirs[row]
    ours = collections.Counter({row: ours[row] for row in theirs})
if theirs != ours or not ours:
    sys.exit("perf's %d rows, tally's %d\nonly perf: %s\nonly tally: %s" % (len(theirs), len(ours), theirs - ours, ours - theirs))
P
# same FILE KEYS OPTION…: perf's table equals tally's, of symbols; SED converts perf's cells to tally's.
same() {
	timeout 60 perf report --stdio --no-children -g none -t "|" --sort "$2" "${@:3}" -i "$1" 2>out |
		sed -E "${SED:-}" >perf.txt
	timeout 60 "$TALLY" report --stdio --no-inline --no-children --percent-limit 0 --raw-addresses --sort "$2" "${@:3}" -i "$1" >tally.txt 2>out &&
		python3 same.py "$2" >out 2>&1
}
for keys in sym srcline sym,srcline dso,sym; do
	check "the same as perf: $keys" same perf.data $keys
done
SED='s/%[ |]+$/%|[unknown]/' check "the same as perf: srcfile" same perf.data srcfile
check "… with totals, each caller's line has a row" eval '"$TALLY" report --stdio --children -s sym,srcline -i perf.data >out 2>err && grep -Eq " 0.00%  .*record_workload.c:[0-9]+$" out'
# The line of main that calls spin has all its samples below it, except those of interrupts in main
# itself: less than 100 % if the program's start has samples.
cat >trees.py <<'P'
import re
rows = re.findall(r"^ *([0-9.]+)%  *0\.00%  record_workload\.c:[0-9]+\n *└─ ([0-9.]+)% spin$", open("out", encoding="utf-8").read(), re.M)
assert len(rows) == 1 and float(rows[0][0]) - float(rows[0][1]) < 3 and float(rows[0][0]) > 50, rows
P
check "… and call trees show functions" eval '"$TALLY" report --stdio --children -g -s srcline -i perf.data >out 2>err && python3 trees.py 2>err'
"$TALLY" report --sort nonsense -i perf.data >out 2>&1
exit_status=$?
check "an unknown key" eval 'test $exit_status = 2 && grep -q "there are comm, .*blocked" out'

# ---- branches -------------------------------------------------------------------------------------------
branch_tests() {
	local keys
	LIBRARY=$WORKLOAD "$here/make_recording.py" branch_stacks branch_lines.data 2>out
	"$here/make_recording.py" branch_stacks branch_stacks.data 2>out && "$here/make_recording.py" branch_leaves branch_leaves.data &&
		"$here/make_recording.py" lbr lbr.data || { skip "branches" "needs a library with symbols"; return; }
	for keys in dso_from,symbol_from,dso_to,symbol_to,in_tx,abort,cycles symbol_to dso,symbol mispredict; do
		check "branches, the same as perf: $keys" same branch_leaves.data $keys
	done
	check "… that go to another object" same branch_lines.data dso_from,dso_to,in_tx,abort,cycles
	check "… of all types" same branch_stacks.data dso_from,dso_to,in_tx,abort,cycles # for functions, perf would be slow
	check "… samples with --no-branch-stack" same branch_stacks.data dso,symbol --no-branch-stack
	check "… source lines of both ends" same branch_lines.data srcline_from,srcline_to
	# If a branch says neither, perf prints the previous branch's value.
	"$TALLY" script -F brstack branch_stacks.data 2>err | grep -oE "/[MP-]/[X-]/[A-]/" | cut -c 2 | sort | uniq -c | awk '{ print $1 }' | sort >wanted
	"$TALLY" report -j -s mispredict -i branch_stacks.data 2>err | sed -n 's/.*"self": \([0-9]*\).*/\1/p' | sort >got
	check "… the same as in script" eval 'diff wanted got >out && [ "$(wc -l <got)" = 3 ]'
	check "branches recorded as call stacks are shown as stacks" eval '"$TALLY" report --stdio -i lbr.data >out 2>err && grep -q "^20 samples.*" out && grep -q TOTAL out'
	check "-b is the default for recordings with branches" eval '"$TALLY" report --stdio -i branch_stacks.data >out 2>err && grep -q "^144 branches .*FROM FUNCTION" <(tr -d "\n" <out)'
	check "… but not for call trees" eval '"$TALLY" report --stdio -g -i branch_stacks.data >out 2>err && grep -q "^20 samples" out'
	check "… through a pipe" eval '"$TALLY" report --stdio -b -i - <branch_stacks.data >piped 2>err && "$TALLY" report --stdio -i branch_stacks.data | diff - piped >out'
	"$TALLY" report -j -i branch_stacks.data >json 2>err
	check "for errors, all branches of a sample count as one" python3 - <<'P'
import json
event = json.load(open("json"))["events"][0]
n, z, entry = 18, 1.959964, event["entries"][0]
p = entry["self"] / event["period"]
centre, half = (p + z*z/2/n) / (1 + z*z/n), z / (1 + z*z/n) * (p*(1-p)/n + z*z/4/n/n) ** .5
assert event["of_branches"] and event["samples"] == 144 == sum(e["self"] for e in event["entries"])
assert abs(entry["self_error"] - 100 * max(p - max(centre - half, 0), centre + half - p)) < 0.002, entry
P
}
branch_tests

# ---- costs, times, memory: a value each -------------------------------------------------------------------
# Compared by each printed text: perf has separate rows for values that it prints alike.
cat >values.py <<'P'
import collections, json, re, subprocess, sys
# values.py TALLY FIELD FILE: perf's rows from standard input
def ours(tally, key, field, path):
    found = collections.Counter()
    for event in json.loads(subprocess.run([tally, "report", "-j", "--sort", key, "-i", path], stdout=subprocess.PIPE, check=True).stdout)["events"]:
        for entry in event["entries"]:
            found[str(entry[field])] += entry["self_samples"]
    return found
tally, key, field, path = sys.argv[1:]
theirs, titles = collections.Counter(), None
for line in sys.stdin:
    cells = [cell.strip() for cell in line.rstrip("\n").split("|")]
    if line.startswith("# Overhead"):
        columns = [i for i, title in enumerate(cells) if i > 1 and not title.startswith("IPC")]
    if re.match(r" *[0-9.]+%", line):
        cell = cells[columns[0]]
        if key in ("symbol_daddr", "phys_daddr", "dcacheline"):
            cell = re.sub(r"^\[.\] ", "", cell)
        if key == "socket":
            cell = str(int(cell))
        theirs[cell or "-"] += int(cells[1])
mine = ours(tally, key, field, path)
if key == "transaction": # the width of perf's column
    width = max(map(len, theirs))
    cut = collections.Counter()
    for text, samples in mine.items():
        cut[text[:width] if text not in theirs else text] += samples
    mine = cut
if key == "symbol_daddr": # in perf a symbol extends to the next one, and one without a type has no offset
    apart = [text for text in mine if text not in theirs]
    assert all(re.match("0x|__data_start", text) for text in apart) and sum(mine[text] for text in apart) < sum(mine.values()) / 5
    theirs, mine = ({text: table[text] for text in table if text in theirs and text in mine} for table in (theirs, mine))
    assert sum("+0x" in text for text in mine) > 10 and any("+0x" not in text for text in mine), mine
if key == "dcacheline": # their names differ
    theirs, mine = sorted(theirs.values()), sorted(mine.values())
if mine != theirs or not theirs:
    sys.exit("perf: %s\ntally: %s" % (theirs, mine))
P
cat >accesses.py <<'P'
# perf script's text for each sample's data_src: accesses.py TALLY FILE
import collections, json, subprocess, sys
tally, path = sys.argv[1:]
said = collections.defaultdict(collections.Counter)
for line in subprocess.run(["perf", "script", "-F", "data_src", "-i", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout.splitlines():
    for part in line.split("|")[1:]:
        name, text = part[:3], part[4:] if part[:3] != "OP " else ""
        said[name][text.strip()] += 1
for name, key in ("LVL", "mem"), ("SNP", "snoop"), ("TLB", "tlb"), ("LCK", "locked"), ("BLK", "blocked"):
    report = json.loads(subprocess.run([tally, "report", "-j", "--sort", key, "-i", path], stdout=subprocess.PIPE, check=True).stdout)
    mine = collections.Counter({entry[key]: entry["self_samples"] for entry in report["events"][0]["entries"]})
    if mine != said[name] or len(mine) < 3:
        sys.exit("%s: only perf: %s\nonly tally: %s" % (key, said[name] - mine, mine - said[name]))
P
cat >traces.py <<'P'
import collections, json, subprocess, sys
tally, path = sys.argv[1:]
said = subprocess.run(["perf", "script", "-F", "trace", "-i", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
theirs = collections.Counter(line.strip() for line in said.splitlines() if line.strip())
mine = collections.Counter()
for event in json.loads(subprocess.run([tally, "report", "-j", "--sort", "trace", "-i", path], stdout=subprocess.PIPE, check=True).stdout)["events"]:
    for entry in event["entries"]:
        mine[entry["trace"]] += entry["self_samples"]
if theirs != mine or len(mine) < 4:
    sys.exit("perf: %s\ntally: %s" % (theirs, mine))
P
# value FILE KEY [FIELD]
value() {
	timeout 60 perf report --stdio --mem-mode -F overhead,sample --sort "$2" -t "|" -i "$1" 2>err |
		python3 values.py "$TALLY" "$2" "${3:-$2}" "$1" >out 2>&1
}
value_tests() {
	local key
	export LIBRARY=$WORKLOAD
	"$here/make_recording.py" memory memory.data 2>out && "$here/make_recording.py" memory_costs memory_costs.data &&
		"$here/make_recording.py" memory_rows memory_rows.data || { skip "values" "needs a library with symbols"; return; }
	check "memory accesses: each sample as in perf script" python3 accesses.py "$TALLY" memory.data
	for key in locked blocked weight local_weight data_page_size code_page_size "phys_daddr phys_addr" "addr address"; do
		check "values, the same as perf: $key" value memory.data $key
	done
	for key in weight ins_lat local_ins_lat; do check "values, the same as perf, with several keys: $key" value memory_costs.data $key; done
	for key in weight local_weight ins_lat local_ins_lat transaction socket time "symbol_daddr data_symbol" "dso_daddr data_object" \
		"dcacheline data_cacheline" "phys_daddr phys_addr" "addr address"; do
		check "values that several samples have, the same as perf: $key" value memory_rows.data $key
	done
	"$TALLY" report -j --mem-mode --sort symbol_daddr -i memory.data >json 2>err
	costs() { perf report --stdio --mem-mode -i memory.data 2>err | sed -n "s/^# Total weight : //p"; }
	check "--mem-mode weighs samples as perf does" eval 'grep -q "\"period\": $(costs)," json && grep -q "\"of_costs\": true" json'
	"$TALLY" report --stdio --mem-mode -i memory_rows.data >out 2>err
	check "… by object and symbol of the data" grep -Eq "^ +SELF +MEMORY ACCESS +DATA SYMBOL +DATA OBJECT +SNOOP +TLB ACCESS +LOCKED +BLOCKED +OBJECT +FUNCTION" out
	"$TALLY" report -j --sort time --time-quantum 250ms -i memory_rows.data >json 2>err
	check "--time-quantum sets the length of time that a row covers" eval 'grep -c "\"time\": \"[01]\.\(00\|25\|5\|75\)0*\"" json >out && [ "$(cat out)" = 5 ]'
	check "values can be combined with functions and with call trees" eval '"$TALLY" report --stdio --sort sym,mem,local_weight -i memory_rows.data >out 2>err && grep -Eq "SELF +LOCAL WEIGHT +MEMORY ACCESS +FUNCTION" out && "$TALLY" report --stdio -g --sort time -i perf.data >out 2>err && grep -Eq "─ [0-9.]+% main" out'
	check "with few samples, the interval is not below 0 % or above 100 %" eval '"$TALLY" report --stdio -i lbr.data 2>err | grep -Eq "^20 samples .*\(10% may be 0 to [1-9][0-9]%\)"'
	if perf record -q -e sched:sched_process_exec,sched:sched_process_exit -o trace.data -- sh -c "ls; ls; true" >out 2>&1; then
		check "texts of tracepoints, the same as in perf script" python3 traces.py "$TALLY" trace.data
	else
		skip "texts of tracepoints, the same as in perf script" "perf can't record tracepoints here"
	fi
	check "branches have addresses" eval '"$TALLY" report -j --sort addr_from,addr_to -i branch_leaves.data >json 2>err && grep -q "\"from_address\": \"0x7f12000" json && grep -q "\"to_address\": \"0x7f12000" json'
	check "addresses of branches through a pipe" eval '"$TALLY" report --stdio --sort mem,socket,weight - <memory_rows.data >piped 2>err && "$TALLY" report --stdio --sort mem,socket,weight -i memory_rows.data | diff - piped >out'
}
value_tests

# questions that the recording can't answer: STATUS WORDS OPTION…
refuses() {
	timeout 20 "$TALLY" report --stdio -i "${FILE:-perf.data}" "${@:3}" >out 2>&1
	[ $? = "$1" ] && grep -Eq "$2" out
}
check "a key without data in the recording is refused" refuses 1 "^tally report: --sort phys_daddr: the recording has no physical addresses" --sort sym,phys_daddr
check "… and the message names the option that records the data" grep -q "^hint: record them with tally record --phys-data" out
check "--mem-mode without costs in the recording is refused" refuses 1 "^tally report: --mem-mode: the recording has no weights" --mem-mode
check "the message for a key that only perf has differs from that for an unknown key" refuses 2 "'parent' is another report" --sort parent
check "without branches, the message names the option that records them" refuses 1 "no branch stacks" --sort dso,sym_from
check "… and the command" grep -q "hint: record them with tally record -b" out
check "… for -b too" refuses 1 "^tally report: -b: .*no branch stacks" -b
check "with --no-branch-stack, keys of branches are refused" refuses 2 "leaves out" --no-branch-stack --sort sym_to
check "call trees of branches are refused" refuses 2 "no call trees" -b -g
echo "1..$number"

#!/bin/bash
# `tally script -F` equals `perf script -F`, line for line, over several kinds of recordings; --csv
# and --json contain the same as the text.  TAP; $TALLY is the binary, $WORKLOAD the program of
# record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export HOME=$scratch

if ! command -v perf >/dev/null || ! command -v python3 >/dev/null || ! perf record -q -o perf.data -e cpu-clock true >out 2>&1; then
	echo "1..0 # SKIP needs perf, which may record, and python3"
	exit 0
fi

# Ignores other tasks' code, which may be anything.  Leaves out lines whose names differ for a
# reason explained in script.sh: return addresses that begin a function (perf has the next
# function's name, tally the caller's), and slots of linkage tables.
same() {
	perf script --no-inline -i "$1.data" "${@:2}" >perf.txt 2>perf.err
	"$TALLY" script --stdio --no-inline -i "$1.data" "${@:2}" >tally.txt 2>tally.err || { cp tally.err out; return 1; }
	[ -s perf.txt ] && [ "$(wc -l <perf.txt)" = "$(wc -l <tally.txt)" ] || { diff perf.txt tally.txt >out; return 1; }
	paste -d $'\001' perf.txt tally.txt | awk -F '\001' '
		$1 == $2 { same++; next }
		$1 ~ /__TMC_END__|_edata/ && !($2 ~ /unknown/) { known++; next } # a variable begins there too
		$1 ~ /\[unknown\]/ && $2 ~ / exit( |\+|$)/ { known++; next } # its last instruction is a call
		$1 ~ /_dl_start_user|__pfx_|@plt/ || $2 ~ /@plt| \.plt(\.got|\.sec)?(\+| |$)|_start( |$)|x86_64_start_reservations/ { known++; next }
		{ print "< " $1; print "> " $2; bad = 1 }
		END { if (known > same / 10 + 2) { print known " of known causes, " same " the same"; bad = 1 } exit bad }' >out
}
# all KIND LIST…: compares each list of fields
all() {
	for fields in "${@:2}"; do
		check "$1: -F $fields" same "$1" -F "$fields"
	done
}

COMMON="comm,tid comm,pid,tid,time,cpu,event,period pid time,event ip,sym,dso ip,sym,symoff,dso ip,dso ip sym misc
	+misc,+pid -comm,-tid -ip -dso -period,-event flags,comm,misc +flags sw:comm,ip comm,,ip"
# Without perf's thread that listens for BPF programs, which sleeps for a second at each recording's
# end.
rec() { perf record --no-bpf-event -q -o "$1.data" "${@:2}" >out 2>&1; }
rec clock -e cpu-clock -F 2000 --sample-cpu -d --data-page-size --code-page-size --weight "$WORKLOAD" spin &&
	all clock $COMMON addr +addr +weight +data_page_size,+code_page_size comm,addr,weight,ip
if rec physical -e cpu-clock -F 2000 -d --phys-data --weight "$WORKLOAD" spin; then
	all physical +phys_addr,+weight
else
	skip "physical: -F +phys_addr,+weight" "the kernel tells this user no physical addresses"
fi
rec faults -e page-faults -c 1 "$WORKLOAD" faults 0.02 && all faults comm,tid,time,event,period ip,sym +misc
rec stacks -e cpu-clock -F 2000 --sample-cpu -g --intr-regs=ip,ax,bx --user-regs=ip,sp "$WORKLOAD" spin &&
	all stacks $COMMON +iregs,+uregs comm,iregs uregs,time ip,sym,uregs
"$TALLY" record -q -o own.data -e cpu-clock -F 2000 --call-graph fp "$WORKLOAD" spin >out 2>&1 && # it has an event that never hits
	all own comm,tid ip,sym,dso pid,tid,time,event,ip,sym time,period,cpu
if rec traces -e sched:sched_switch,cpu-clock -g sh -c 'ls >/dev/null; sleep 0.05' && grep -q . traces.data; then
	all traces comm,tid,time,event,trace trace:trace trace:comm,time,trace +period -ip -trace trace: sw: ip,sym trace
	check "fields for each type of event" same traces -F trace:time,trace -F sw:comm,time
	check "-F twice: the second list replaces the first, or adds to it" eval 'same traces -F comm -F +tid && same traces -F comm,time -F -time'
else
	skip "tracepoints" "perf can't record them"
fi
for kind in lbr branch_stacks branch_leaves; do
	"$here/make_recording.py" $kind $kind.data 2>out || continue
	all $kind comm,brstack comm,brstacksym comm,brstacksym,dso brstack,sym,ip,dso +brstack,-dso comm,ip,sym,period
done

# Memory data from hardware, which few machines record, and the output of BPF programs.  (If
# bpf-output is requested by name, perf also shows everything else.)
for kind in memory memory_costs; do
	"$here/make_recording.py" $kind $kind.data 2>out || continue
	check "$kind: the default fields" same $kind
	all $kind data_src addr,ip,sym,symoff,dso comm,addr,data_src,weight +data_src,+weight phys_addr,data_page_size,code_page_size \
		raw:addr,weight -addr,-ip synth,time,callindent,ipc
done
[ -s memory_costs.data ] && all memory_costs ins_lat,weight +ins_lat
if "$here/make_recording.py" bpf_output bpf_output.data 2>out; then
	check "bpf_output: the default fields" same bpf_output
	all bpf_output +misc -ip -bpf-output comm,tid
fi
rec places -e page-faults -c 1 -d "$WORKLOAD" faults 0.01 && all places comm,addr addr,sym addr,sym,symoff,dso +addr ip,addr,sym
rec daytime -k mono -e cpu-clock -F 2000 "$WORKLOAD" spin && all daytime tod comm,tod,time +tod

# --ns, --reltime, --deltatime are relative to the shown samples, so each list of fields has its
# own. (With a share, or an open end, perf's --time fails with --reltime.)
own_times() {
	for how in --ns --reltime --deltatime "--ns --reltime" "--ns --deltatime"; do
		check "$1: $how ${*:2}" same "$1" $how "${@:2}"
	done
}
own_times clock
own_times clock -F time,event
own_times stacks
own_times daytime -F comm,tod,time
for share in 30%-70% 50%-100%; do
	for how in --ns --deltatime; do check "clock: $how --time $share" same clock $how --time $share; done
done
for range in ,0.02 0.01,0.03 "0,0.01 0.02,0.03"; do
	check "clock: --reltime --time $range is counted from the first sample" same clock --reltime --time "$range"
done
check "… also with an open end; shares are the same as without --reltime" eval '
	"$TALLY" script -F tid,period,ip --reltime --time 0.01, -i clock.data >out 2>&1 && [ -s out ] &&
	"$TALLY" script -F tid,period,ip --reltime --time 0.01,1000 -i clock.data | cmp - out &&
	"$TALLY" script -F tid,period,ip --reltime --time 20%-60% -i clock.data >out 2>&1 && [ -s out ] &&
	"$TALLY" script -F tid,period,ip --time 20%-60% -i clock.data | cmp - out'
if [ -s traces.data ]; then
	own_times traces
	own_times traces -F trace:comm,trace -F sw:time,event
	own_times traces -F trace:time,trace -F sw:comm
fi
if rec switches -e cpu-clock -F 2000 --switch-events sh -c 'ls >/dev/null; sleep 0.05'; then
	own_times switches --show-switch-events
	own_times switches --show-task-events --show-mmap-events
fi
if perf record --no-bpf-event -q -o - -e cpu-clock -F 2000 "$WORKLOAD" spin >pipe 2>out; then
	for how in --ns --reltime --deltatime; do
		perf script --no-inline -F comm,tid,time,event $how -i - <pipe >perf.txt 2>err
		"$TALLY" script --stdio --no-inline -F comm,tid,time,event $how -i - <pipe >tally.txt 2>err
		diff perf.txt tally.txt >out
		check "a pipe: $how" test -s tally.txt -a ! -s out
	done
	"$TALLY" script --stdio --reltime --time 0.01, -i - <pipe >out 2>err
	check "… a range is refused with --reltime, since a pipe does not tell its first time" eval '[ ! -s out ] && grep -q "came from a pipe" err && grep -q "^hint: without --reltime give START,END" err'
fi
refuses_times() { "$TALLY" script "${@:2}" -i stacks.data >out 2>&1; [ $? = 2 ] && grep -q -e "$1" out; }
check "--reltime with --deltatime is refused" refuses_times "exclude each other" --reltime --deltatime
for layout in -j --csv --records; do
	check "--reltime with $layout is refused" refuses_times "clock in nanoseconds" --reltime $layout
	check "--deltatime with $layout is refused" refuses_times "--deltatime is for text" --deltatime $layout
done
for layout in -j --csv; do
	"$TALLY" script $layout --ns -F tod -i daytime.data 2>err | grep -o '[0-9-]* [0-9:]*\.[0-9]*' >tally.txt
	"$TALLY" script --ns -F tod -i daytime.data 2>err | sed 's/^ *//; s/ *$//' >text
	diff text tally.txt >out
	check "$layout: tod shows nanoseconds" test -s tally.txt -a ! -s out
done

# Source lines of the program, whose source is here.  For libraries, tally names the file that
# contains the code, perf the compilation unit's.
if rec lines -e cpu-clock -F 2000 --call-graph dwarf "$WORKLOAD" spin && rec leaves -e cpu-clock -F 2000 "$WORKLOAD" spin; then
	for kind in leaves lines; do
		for fields in +srcline ip,srcline ip,sym,srcline; do
			perf script --no-inline -i $kind.data -F $fields 2>/dev/null | grep -A1 '\.c:' | grep '^  record_workload' >perf.txt
			"$TALLY" script --stdio --no-inline -i $kind.data -F $fields 2>err | grep '^  record_workload\.c' >tally.txt
			sed -i '/^  [^ ]*:0$/d' perf.txt # code without a line: perf prints line 0, tally the address in the object
			check "source lines, $kind: -F $fields" eval '[ -s tally.txt ] && diff perf.txt tally.txt >out'
		done
	done
fi

# ---- JSON and CSV: the same samples and stacks as the text's -----------------------------------------------
cat >compare.py <<'P'
import csv, json, re, sys
text = [block.split("\n") for block in open("text").read().strip("\n").split("\n\n")]
objects = [json.loads(line) for line in open("json")]
rows = list(csv.DictReader(open("csv", newline="")))
assert len(text) == len(objects) == len(rows) > 10, (len(text), len(objects), len(rows))
for lines, sample, row in zip(text, objects, rows):
    head = re.match(r"(.*?) +(\d+) +(?:\[(\d+)\] +)?(\d+)\.(\d+): +(\d+) +(\S+): $", lines[0])
    assert [head[1], int(head[2]), int(head[6]), head[7]] == [sample[k] for k in ("command", "tid", "period", "event")]
    assert sample["time_ns"] // 1000 == int(head[4]) * 10**6 + int(head[5])
    frames = ["\t%16x %s (%s)" % (int(f["address"], 16), f["function"] + "+0x%x" % f["offset"] if f["function"] else "[unknown]",
              "inlined" if f["inlined"] else f["object"]) for f in sample["frames"]]
    assert frames == lines[1:], (frames, lines)
    assert row["command"] == head[1] and row["tid"] == head[2] and row["time_ns"] == str(sample["time_ns"])
    assert row["stack"] == ";".join(f["function"] or "[unknown]" for f in sample["frames"])
assert any(f["file"] and f["file"].endswith("record_workload.c") and f["line"] for s in objects for f in s["frames"])
P
"$TALLY" script --stdio -i stacks.data >text 2>err
"$TALLY" script -j -i stacks.data >json 2>err
"$TALLY" script --csv -i stacks.data >csv 2>err
check "JSON and CSV have the same values as the text" eval 'python3 compare.py >out 2>&1'

# -F chooses keys and columns.  Compares the sampled address with the text's line, and the
# hardware's data with their fields.
cat >chosen.py <<'P'
import csv, json, re, sys
text, objects, rows = open(sys.argv[1]).read().splitlines(), [json.loads(l) for l in open(sys.argv[2])], list(csv.DictReader(open(sys.argv[3], newline="")))
assert len(text) == len(objects) == len(rows) > 10, (len(text), len(objects), len(rows))
if sys.argv[4] == "place":
    for line, sample, row in zip(text, objects, rows):
        head = re.match(r" *(\S.*?) +([0-9a-f]+) (.*) \((.*)\)$", line)
        assert list(sample) == ["command", "frames"] and list(row) == ["command", "ip", "symbol", "offset", "object"], (sample, row)
        symbol = row["symbol"] + ("+0x%x" % int(row["offset"]) if row["offset"] else "")
        assert [row["command"], row["ip"], symbol, row["object"]] == [head[1], "0x" + head[2], head[3], head[4]], (row, line)
        frame = sample["frames"][0]
        assert list(frame) == ["address", "function", "offset", "object", "inlined"], frame
        assert (frame["function"] or "[unknown]") == row["symbol"] and frame["object"] == row["object"]
else:
    for line, sample, row in zip(text, objects, rows):
        address, bits, words, weight, latency, physical = re.match(r" *(\w+) +(\w+) (\|.*\S) +(\d+) +(\d+) +(\w+) \S+ \S+$", line).groups()
        keys = ["addr", "data_src", "data_source", "weight", "ins_lat", "phys_addr", "data_page_size", "code_page_size"]
        assert list(sample) == keys and list(row) == keys
        assert list(sample.values())[:-2] == ["0x" + address, "0x" + bits, words, int(weight), int(latency), "0x" + physical], (sample, line)
        assert [str(value) for value in sample.values()] == list(row.values())
P
chosen() {
	for out_as in stdio json csv; do
		"$TALLY" script --no-inline --$out_as -i "$1.data" -F "$3" >"chosen.$out_as" 2>err || return 1
	done
	python3 chosen.py chosen.stdio chosen.json chosen.csv "$2" >out 2>&1
}
check "-F chooses JSON's keys and CSV's columns: an address" chosen clock place comm,ip,sym,symoff,dso
[ -s memory_costs.data ] && check "-F chooses JSON's keys and CSV's columns: memory" \
	chosen memory_costs memory addr,data_src,weight,ins_lat,phys_addr,data_page_size,code_page_size
heads() { "$TALLY" script --csv -i clock.data "${@:2}" | head -1 | tr -d '\r' >out; [ "$(cat out)" = "$1" ]; }
check "CSV: the default columns, with fields added and removed" eval 'heads command,pid,tid,cpu,time_ns,event,period,trace,stack &&
	heads command,pid,tid,cpu,time_ns,event,period,trace,addr,stack,symbol -F +addr,+sym && heads command,pid,tid,cpu,time_ns,event,trace,stack -F -period &&
	heads time_ns,stack -F time,stack && heads command,ip,srcline -F comm -F +ip,+srcline'

# ---- events that have no samples ------------------------------------------------------------------------
# The records of tasks come from a software event with fewer fields: it does not need these.
if "$TALLY" record -q --no-call-graph -e raw_syscalls:sys_enter -o own.data true >out 2>&1; then
	check "side-band events do not need the fields of samples" same own -F comm,tid,ip,sym
else
	skip "side-band events do not need the fields of samples" "no tracepoints"
fi

# ---- what can't be shown -------------------------------------------------------------------------------
refuses() { "$TALLY" script -F "$1" -i stacks.data >out 2>&1; [ $? = "$2" ] && grep -q "$3" out; }
check "an unknown field" refuses comm,nonsense 2 "there is no field 'nonsense'"
check "a field of perf's that tally does not have" refuses +brstackinsn 2 "does not show perf's field 'brstackinsn'"
check "fields with and without signs in one list" refuses comm,+ip 2 "can't be in one list with"
check "an unknown type" refuses nope:comm 2 "unknown event type 'nope'"
check "fields of tracepoints for other types" refuses sw:trace 2 "only tracepoints have"
check "an empty list" refuses "" 2 "no field is left to show"
check "CSV's own field in text" refuses comm,stack 2 "stack is a column of --csv"
check "a value that was not recorded, in JSON" eval '"$TALLY" script --json -F +weight -i stacks.data >out 2>&1; [ $? = 1 ] && grep -q "have no WEIGHT" out'
check "an offset without its address" refuses comm,symoff 2 "needs sym"
check "a source line without its address" refuses comm,srcline 2 "needs ip"
check "parts of the weight that were not recorded" eval '"$TALLY" script -F ins_lat -i memory.data >out 2>&1; [ $? = 1 ] && grep -q "no WEIGHT_STRUCT" out'
check "a time of day that was not recorded" refuses +tod 1 "lacks the time of day"
check "the message names what was not recorded" refuses +addr 1 "have no ADDR"
echo "1..$number"

#!/bin/bash
# What perf writes in addition to the kernel's records: directories of perf record --threads, pipes
# with every record of its tools, perf stat record.  TAP; $TALLY is the binary, $WORKLOAD the
# program of record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export HOME=$scratch TZ=UTC

if ! command -v perf >/dev/null || ! command -v python3 >/dev/null || ! perf record -q -o perf.data -e cpu-clock true >out 2>&1; then
	echo "1..0 # SKIP needs perf, which may record, and python3"
	exit 0
fi

# A whole machine may run anything: JITs' code and ended programs, for which perf and tally find
# names in other ways.  So only the workload's names are compared.  perf names fewer PLT slots
# (docs/compatibility.md).
names() { sed -E '/^ *record_workload /!s/(: +[0-9a-f]+ ).*/\1/; s/ [^ ]*(@plt|\.plt|\.plt\.got|\.plt\.sec)\+0x[0-9a-f]* \(/ [unknown] (/'; }
same_script() {
	timeout 60 perf script --no-inline -i "$1" 2>perf.err | names >perf.txt
	timeout 60 "$TALLY" script --no-inline "$1" 2>tally.err | names >tally.txt
	diff perf.txt tally.txt >out && grep -q ' inner+' tally.txt
}
same_header() {
	perf report --header-only -I -i "$1" >perf.txt 2>/dev/null
	"$TALLY" report --header-only -I "$1" >tally.txt 2>tally.err
	diff perf.txt tally.txt >out && [ -s tally.txt ]
}

# ---- directories
for options in "" -z; do
	if perf record -q --threads $options -a -e cpu-clock -F 999 -o "folder$options" -- "$WORKLOAD" spin >out 2>&1 && [ -d "folder$options" ]; then
		check "a directory is read in time order, as in perf $options" same_script "folder$options"
		check "its header $options" same_header "folder$options"
		"$TALLY" report "folder$options" >out 2>&1
		check "its report $options" grep -q "samples of cpu-clock" out
		"$TALLY" fold "folder$options" >out 2>err
		check "its stacks $options" grep -q "^workload\|^record_workload" out
		"$TALLY" diff "folder$options" "folder$options" >out 2>err
		check "its difference from itself $options" grep -q "samples" out
	else
		skip "a directory $options" "perf can't record --threads -a"
	fi
done
cp "$WORKLOAD" workload && for options in "" -z; do
	if perf record -q --threads $options -e cpu-clock -F 999 -o "packed$options" -- ./workload 200 >out 2>&1 && [ -d "packed$options" ]; then
		timeout 60 perf script -i "packed$options" >perf.before 2>perf.err
		timeout 60 "$TALLY" script "packed$options" >before.txt 2>tally.err
		check "it is packed in place $options" timeout 60 "$TALLY" pack -q "packed$options"
		timeout 60 perf script -i "packed$options" >perf.txt 2>perf.err
		diff perf.before perf.txt >out
		check "… perf reads it as before $options" test -s perf.txt -a ! -s out
		mv workload hidden
		timeout 60 "$TALLY" script "packed$options" >after.txt 2>tally.err
		mv hidden workload
		diff before.txt after.txt >out
		check "… and it carries its names $options" test -s after.txt -a ! -s out
	else
		skip "a directory $options" "perf can't record --threads -a"
	fi
done
mkdir empty
"$TALLY" report empty >out 2>&1
check "a folder that is no recording" grep -q "without a recording" out
if [ -s folder/data ]; then
	"$TALLY" pack folder -o other >out 2>&1
	check "-o of pack is refused for a directory, and the message says how to make a copy" grep -q "cp -r folder other" out
	cp -r folder torn
	for part in torn/data.*; do truncate -s -5 "$part"; done
	"$TALLY" script torn >tally.txt 2>out
	check "a message tells of a torn part, and the rest is used" grep -q "damaged at offset" out
	check "… and has samples" test -s tally.txt
fi

# ---- pipes
have_library=1
"$here/make_recording.py" tool_pipe pipe.data 2>out || have_library=0
if [ $have_library = 1 ]; then
	"$here/make_recording.py" tool_pipe_more more.data
	perf script -i - <pipe.data >perf.txt 2>/dev/null
	"$TALLY" script - <pipe.data >tally.txt 2>err
	check "a pipe with every record of perf's tools, as perf prints it" diff perf.txt tally.txt
	cp err out
	check "there are no warnings" test ! -s err
	"$TALLY" script - <more.data >more.txt 2>out
	check "with more such records, the samples are the same" diff tally.txt more.txt
	check "unknown records are counted, in one line" test "$(grep -v 'AUX data' out | grep -c 'warning') $(grep -c '2 records of unknown types were skipped' out)" = "1 1"
	"$TALLY" script --records - <more.data >out 2>/dev/null
	check "EVENT_UPDATE gives names, units, scales and CPUs" \
		test "$(grep -c 'unit=msec$\|scale=1e-06$\|name=renamed$\|cpus=0-1,3' out) $(grep -c renamed tally.txt)" = "4 2"
	check "the payload of AUXTRACE is not taken for records" test "$(grep -c ' SAMPLE ' out)" = 2
	for line in 'CPU_MAP size=.* cpus=0-1' 'THREAD_MAP .*pid=4321 comm=tools' 'AUXTRACE_ERROR .*message=odd' 'ID_INDEX .*id=6 idx=1 cpu=1' \
		'HEADER_EVENT_TYPE .*id=77 name=old:tracepoint' 'TIME_CONV ' 'type 200 '; do
		check "--records shows $line" grep -q "$line" out
	done
else
	skip "pipes" "there is no library with symbols"
fi
# An unknown feature section.
"$here/make_recording.py" features_unknown unknown.data
"$TALLY" script unknown.data >/dev/null 2>out
check "unknown feature sections are counted" grep -q "1 feature section of an unknown kind was skipped" out

# ---- perf stat record
perf stat record -o stat.data -e cpu-clock,context-switches -- true >/dev/null 2>&1
"$TALLY" report stat.data >/dev/null 2>out
check "a message says that the file has counts of perf stat record" grep -q "has counts but no samples: perf stat record wrote it" out
"$TALLY" script stat.data >/dev/null 2>out
check "… script says it too" grep -q "has counts but no samples" out
"$here/make_recording.py" tool_file file.data
"$TALLY" flamegraph -o graph.svg file.data >/dev/null 2>out
check "… and flame graphs" grep -q "has counts" out
echo "1..$number"

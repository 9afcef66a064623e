#!/bin/bash
# The options of perf's views: tally accepts each one, or refuses it and names a replacement.
# Checks the effect of the options accepted under perf's names.  TAP; $TALLY is the binary, $SHARES
# MS a program that is busy for that time.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch PERF_CONFIG=/dev/null

run() { expected=$1; shift; timeout 60 "$@" >out 2>&1 </dev/null; status=$?; [ "$status" = "$expected" ] || { echo "status $status" >>out; false; }; }
has() { grep -qF -- "$1" out; }
have perf || perf() { return 1; }

# --- all of perf's: no recording is needed -----------------------------------------------------------------------
# An unknown option follows the tested one, so that the command starts nothing.  It is there twice,
# since an option with a value takes the first as that value.
least=(script:60 annotate:30 top:60 diff:22 list:6)
for pair in "${least[@]}"; do
	command=${pair%:*} count=${pair#*:}
	if ! have perf; then
		skip "no option of perf $command is unknown" "there is no perf"
		skip "the list of them is complete" "there is no perf"
		continue
	fi
	perf $command -h 2>&1 | grep -oE '^    (-., |    )--[A-Za-z0-9_-]+' | grep -oE -- '--[A-Za-z0-9_-]+' | sort -u >options
	while read -r option; do
		timeout 10 "$TALLY" $command "$option" --no-such-thing --no-such-thing >said 2>&1 </dev/null
		status=$?
		[ $status = 2 ] && ! grep -qE "there is no option $option\b|is ambiguous" said ||
			echo "$option: status $status, $(head -1 said)"
		! grep -q "is not an option of tally's: *$" said || echo "$option: refused without a hint"
	done <options >out
	check "no option of perf $command is unknown ($(wc -l <options) of them)" test "$(wc -l <options)" -ge "$count" -a ! -s out
	sed -n "/^## .$command.: perf's options/,/^## [^-]*$/p" "$SOURCE/docs/compatibility.md" >listed
	while read -r option; do
		grep -qE -- "$option\`|$option[ =\`[]" listed || echo "$option"
	done <options >out
	check "the list of them is complete" test ! -s out
	"$TALLY" $command --help >help 2>&1
	grep -E -- '^ .*--(itrace|stitch-lbr|force|switch-on|prefix|percentage)\b' help >out
	check "the help of $command does not list options that have no effect or are refused" test -s help -a ! -s out
done

run 2 "$TALLY" top --cgroup x && has "-G NAME" && run 2 "$TALLY" top -M intel && has "tally annotate"
check "top: an option that only perf has is refused, and the message names a replacement"
run 2 "$TALLY" top --call-graph=sideways && has "is none of fp, dwarf" && run 2 "$TALLY" top --call-graph=fp,graph --no-such-thing && has "no option --no-such-thing"
check "top --call-graph takes record's kinds; a word after fp, as in fp,graph, is ignored"
for shape in graph,0.5,caller caller fractal,0.5 =graph,0.5,caller,function; do
	case $shape in =*) shape=--call-graph$shape ;; *) shape="--call-graph $shape" ;; esac
	# shellcheck disable=SC2086
	run 2 "$TALLY" top $shape --no-such-thing && has "no option --no-such-thing" || break
done && run 2 "$TALLY" top --call-graph graph,0.5,callee && has "tally report -g callee"
check "… a shape alone, too, except for callee"
run 2 "$TALLY" diff -C bash,cc1 old new && has "--comm bash,cc1" && run 2 "$TALLY" report -n --stdio && has "-j has the samples" &&
	run 2 "$TALLY" top -n -z && has "tally report -j"
check "… a letter that means something else in perf is refused too"
run 2 "$TALLY" annotate --gtk && has "--html" && run 2 "$TALLY" report --gtk && has "flamegraph"
check "… and an option that only perf's manual pages name"
run 2 "$TALLY" diff --stream && has "flamegraph --diff" && run 2 "$TALLY" diff -c ratio && has "delta-abs"
check "diff: an option that only perf has is refused, and the message names a replacement"
run 2 "$TALLY" annotate --tui && has "tally report --tui" && run 2 "$TALLY" annotate --percent-type global-hits && has "local-period"
check "annotate: an option that only perf has is refused, and the message names a replacement"
run 2 "$TALLY" script --xed && has "perf does" && run 2 "$TALLY" script -s x && has "tally perf script -i tally.data -s FILE"
check "script: an option that only perf has is refused, and the message names a replacement"

for words in failed-syscalls 'report failed-syscalls' 'failed-syscalls -F comm' 'flamegraph -a -F 99 sleep 60'; do
	name=${words#report } && name=${name%% *}
	# shellcheck disable=SC2086
	run 2 "$TALLY" script $words && has "there is no recording '$name'" && has "tally perf script report $name -i tally.data" || break
done && run 2 "$TALLY" script record rwtop && has "tally perf script report rwtop -i tally.data" && run 1 "$TALLY" script no/such.data && has "can't open"
check "script: for a name of perf's scripts, the message says what runs it"
run 2 "$TALLY" list --details && has "tally list pmu" && run 2 "$TALLY" list --no-desc && has "-j has names" && run 1 "$TALLY" list sdt && has "perf probe"
check "list: an option that only perf has is refused, and the message names a replacement"
run 2 "$TALLY" report --no-sort && has "there is no option --no-sort: leave out --sort" && run 2 "$TALLY" report --no-inline --inline --demangle --no-such-thing && has "no option --no-such-thing" &&
	run 2 "$TALLY" report --no-force && has "tally always works as with --force" && run 2 "$TALLY" top --inherit --no-hierarchy --no-zero --no-such-thing && has "no option --no-such-thing"
check "--no-NAME takes back --NAME, or the message says what to leave out"

# --- what top takes ----------------------------------------------------------------------------------------------
# The content of a view is arbitrary, perhaps empty: the test checks the layout.
"$SHARES" 60000 >/dev/null & busy=$!
run 2 "$TALLY" top -s comm,nosuch && has "there are comm, pid, tid, dso, sym"
check "top -s: unknown keys are refused"
if run 0 "$TALLY" top --stdio -p $busy -n 1 -d 200ms -e cpu-clock; then
	run 0 "$TALLY" top --stdio -p $busy -n 1 -d 200ms -e cpu-clock -s tid,dso && grep -qE 'SELF +TID +OBJECT *$' out
	check "top -s: the columns are the given keys"
	run 0 "$TALLY" top --stdio -t $busy -n 1 -d 200ms -e cpu-clock -m 16 -i -z -v --force --children --all-cgroups --namespaces \
		--no-bpf-event --num-thread-synthesize 2 --proc-map-timeout 100 --hide_kernel_symbols && grep -q SELF out
	check "… perf's names of options are accepted"
	run 0 "$TALLY" top --stdio -p $busy -n 1 -d 200ms -e cpu-clock -g --no-inline --max-stack 1 --percent-limit 0 &&
		awk '/^[0-9 ]*[0-9.]+%/ { rows++; other += $1 != $2 } END { exit !rows || other }' out
	check "top --max-stack 1: each function's total is its self"
	run 0 "$TALLY" top --stdio -p $busy -n 1 -d 200ms -e cpu-clock -g --no-children && grep -qE '^ +SELF' out &&
		! grep -q TOTAL out && run 0 "$TALLY" top --stdio -p $busy -n 1 -d 200ms -e cpu-clock -g --no-children --children &&
		grep -q TOTAL out
	check "top --no-children: there is no column of totals"
else
	skip "top -s: the columns are the given keys" "can't sample: $(head -1 out)"
	skip "… perf's names of options are accepted" "can't sample"
	skip "top --max-stack 1: each function's total is its self" "can't sample"
	skip "top --no-children: there is no column of totals" "can't sample"
fi
kill $busy; wait $busy 2>/dev/null

# --- what diff takes ---------------------------------------------------------------------------------------------
printf 'a;b 10\nc 20\n' >old.folded
printf 'a;b 30\nc 20\n' >new.folded
run 0 "$TALLY" diff --stdio old.folded new.folded
cp out plain
run 0 "$TALLY" diff --stdio -f -v -c delta-abs old.folded new.folded && cmp -s out plain
check "diff: options for what tally always does are accepted"
run 1 "$TALLY" diff -S b old.folded new.folded && has "only recordings can be filtered"
check "… and -S needs recordings, not folded stacks"

# --- what script takes -------------------------------------------------------------------------------------------
"$TALLY" record -q --call-graph fp -e page-faults -c 1 -o faults sh -c 'true; ls / | sort' >out 2>&1
if ! "$TALLY" script -i faults 2>>out | grep -q .; then
	skip "script accepts perf's names of options" "page faults can't be recorded: $(head -1 out)"
	done_testing
	exit
fi
"$TALLY" script -i faults >all 2>>out
run 0 "$TALLY" script -a -f -v --demangle --inline -i faults && grep -v '^tally script: warning' out | cmp -s - all
check "script: options for what tally always does are accepted"
"$TALLY" script -G -i faults >leaves 2>&1
cp leaves out
check "-G: a line for each sample, with its address" \
	test "$(grep -c 'page-faults' all)" = "$(grep -cE ':  +[0-9a-f]+ .*\(.*\)$' leaves)" -a "$(wc -l <leaves)" = "$(grep -c page-faults all)"
"$TALLY" script -G -j --no-inline -i faults >json 2>&1
cp json out
check "… in JSON, too" test -s json -a "$(grep -c '"frames":\[{[^}]*}\]' json)" = "$(wc -l <json)"
if have perf && perf script -G -i faults >theirs 2>err && [ -s theirs ]; then
	sed 's/ *([^()]*)$//; s/+0x[0-9a-f]* *$//' theirs | awk '{ print $1, $2, $3, $4, $5, $6, $7 }' | sort >theirs.places
	sed 's/ *([^()]*)$//; s/+0x[0-9a-f]* *$//' leaves | awk '{ print $1, $2, $3, $4, $5, $6, $7 }' | sort >ours.places
	diff theirs.places ours.places >out
	check "… as perf has it" test ! -s out
else
	skip "… as perf has it" "there is no perf"
fi
# Compares only addresses; other tests compare the names of places.
addresses() { awk '/^[^ \t]/ { print "-" } /^[ \t]+[0-9a-f]/ { print $1 }'; }
"$TALLY" script --no-inline -i faults 2>>out | addresses | awk '/-/ { n = 0 } n++ < 3' >wanted
"$TALLY" script --no-inline --max-stack 2 -i faults 2>>out | addresses >ours
diff wanted ours >out
check "--max-stack N keeps the N innermost frames of each stack" test -s ours -a ! -s out
"$TALLY" script -j --no-inline --max-stack 2 -i faults >json 2>out
python3 - json >ours.json 2>>out <<'P'
import json, sys
for line in open(sys.argv[1]):
    print(len(json.loads(line)["frames"]))
P
awk '/-/ { if (NR > 1) print n; n = -1 } { n++ } END { print n }' ours | diff - ours.json >>out
check "… in JSON, too" test -s json -a ! -s out
"$TALLY" report --no-inline --children --max-stack 1 --percent-limit 0 -j -i faults >json 2>out
python3 - json >>out 2>&1 <<'P'
import json, sys
rows = [row for event in json.load(open(sys.argv[1]))["events"] for row in event["entries"]]
sys.exit(not rows or any(row["total"] != row["self"] for row in rows))
P
check "… and in a report each function's total is then its self"
"$TALLY" script --no-inline -i faults 2>out | addresses >ours.whole
if have perf && perf script --no-inline -i faults 2>out | addresses | cmp -s - ours.whole; then
	perf script --no-inline --max-stack 2 -i faults 2>err | addresses | diff - ours >out
	check "… as perf has it" test ! -s out
else
	skip "… as perf has it" "perf has none, or other stacks altogether"
fi
if have perf && perf record -q -e cpu-clock:u -F 500 --call-graph dwarf -o copies "$SHARES" 60 >out 2>&1 &&
	perf script --no-inline -i copies 2>out | addresses >theirs && "$TALLY" script --no-inline -i copies 2>>out | addresses | cmp - theirs >>out; then
	perf script --no-inline --max-stack 1 -i copies 2>err | addresses >theirs
	"$TALLY" script --no-inline --max-stack 1 -i copies 2>out | addresses >ours
	diff theirs ours >>out
	check "… also for stacks unwound from copies" test -s ours -a ! -s out
else
	skip "… also for stacks unwound from copies" "perf has none, or other stacks altogether"
fi
"$TALLY" fold --no-inline -i faults 2>/dev/null | sed 's/ [0-9]*$//' | awk -F';' '{ print $1 ";" (NF > 2 ? $(NF - 1) ";" : "") $NF }' | sort -u >wanted
"$TALLY" fold --no-inline --max-stack 2 -i faults 2>/dev/null | sed 's/ [0-9]*$//' | sort -u | diff wanted - >out
check "fold --max-stack" test -s wanted -a ! -s out
run 1 "$TALLY" fold --max-stack 2 old.folded && has "perf script --max-stack 2"
check "… is refused for folded text"
run 2 "$TALLY" script --max-stack 0 -i faults && has "--max-stack" && run 2 "$TALLY" report --max-stack x -i faults && has "--max-stack"
check "--max-stack without a valid number is refused"
comm=$(awk 'NR == 1 { print $1 }' leaves)
object=$(sed -n 's/.*(\(.*\))$/\1/p' leaves | grep '^/[a-z]' | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }')
symbol=$(sed -nE 's/.*: +[0-9a-f]+ ([A-Za-z_][A-Za-z0-9_]*)\+0x[0-9a-f]+ \(.*/\1/p' leaves | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }')
"$TALLY" script -G -c "$comm" -i faults >ours 2>out; awk -v comm="$comm" '$1 == comm' leaves | cmp - ours >>out 2>&1
check "-c, --comms" test -s ours -a ! -s out
if [ -n "$object" ]; then
	"$TALLY" script -G --dsos "${object##*/}" -i faults >ours 2>out; grep -F "($object)" leaves | cmp - ours >>out 2>&1
	check "--dsos" test -s ours -a ! -s out
else
	skip "--dsos" "no sample is in a file"
fi
if [ -n "$symbol" ]; then
	"$TALLY" script -G -S "$symbol" -i faults >ours 2>out; grep -E ": +[0-9a-f]+ $symbol\+0x" leaves | cmp - ours >>out 2>&1
	check "-S, --symbols" test -s ours -a ! -s out
	"$TALLY" script -S "$symbol" -i faults 2>out | grep -c page-faults >count
	check "… prints these samples with their whole stacks" test "$(cat count)" = "$(wc -l <ours)"
else
	skip "-S, --symbols" "no sample has a name"
fi
run 0 "$TALLY" script -S nobody -i faults && has "warning:"
check "a warning says that no sample passes the filter"
"$TALLY" script --records -i faults >records 2>&1
run 0 "$TALLY" script -D -i faults && cmp -s out records
check "-D prints every record"
if [ -n "$symbol" ]; then
	run 0 "$TALLY" diff -j -S "$symbol" -e page-faults faults faults
	grep -o '"function": *"[^"]*"' out | sort -u >functions
	check "diff -S: only rows of that function" test "$(sed 's/.*: *"\(.*\)"/\1/' functions)" = "$symbol"
	run 0 "$TALLY" diff --comms "$comm" -j faults faults && grep -q '"rows"' out && run 1 "$TALLY" diff --comms nobody faults faults
	check "diff --comms"
else
	skip "diff -S: only rows of that function" "no sample has a name"
fi
if [ -n "$object" ]; then
	run 0 "$TALLY" diff -j -d "${object##*/}" faults faults
	grep -o '"object": *"[^"]*"' out | sort -u >objects
	check "diff -d: only rows of that object" test "$(sed 's/.*: *"\(.*\)"/\1/;s|.*/||' objects)" = "${object##*/}"
else
	skip "diff -d: only rows of that object" "no sample is in a file"
fi

# --- filters by what was not recorded ------------------------------------------------------------------------------
if have python3; then
	OBJECTS=/absent/program "$here/make_recording.py" in_objects no_cpus && "$here/make_recording.py" some_fields some_cpus
	for command in 'report --stdio' script annotate fold 'flamegraph -o x.svg' timeline 'export -o x.pb.gz' 'diff no_cpus'; do
		# shellcheck disable=SC2086
		run 1 "$TALLY" $command -C 0 -i no_cpus 2>&1 || run 1 "$TALLY" $command -C 0 no_cpus
		has "samples can't be chosen by their CPUs: the recording has none" && has 'hint: record them'
		check "$command: -C 0 is refused if no sample has a CPU"
	done
	run 0 "$TALLY" script -F event -C 0 -i some_cpus && [ "$(grep -c 'with-cpu' out)" = 1 ] && ! has without
	check "-C 0 leaves out samples without a CPU"
	run 0 "$TALLY" script -F event -C 0-4095 -i some_cpus && [ "$(grep -c 'with-cpu' out)" = 2 ] && ! has without &&
		run 0 "$TALLY" script -F event --time 0,1 -i some_cpus && [ "$(grep -c 'with-cpu' out)" = 2 ] && ! has without &&
		run 0 "$TALLY" script -F event --pid 1-100000 -i some_cpus && has without
	check "… and so do other filters by what an event lacks"
else
	skip "filters by what was not recorded" "needs python3"
fi

# --- what annotate takes -----------------------------------------------------------------------------------------
"$TALLY" record -q -e cpu-clock -F 2000 -o clock -- "$SHARES" 60 >out 2>&1
function=$("$TALLY" script -i clock --no-inline -G 2>>out | sed -nE 's/.*: +[0-9a-f]+ ([a-z_]+)\+0x[0-9a-f]+ \(.*shares\)$/\1/p' | head -1)
if [ -z "$function" ]; then
	skip "annotate accepts perf's names of options" "no function of the program was sampled: $(head -1 out)"
	done_testing
	exit
fi
run 0 "$TALLY" annotate --stdio -i clock --dso shares -n -M intel "$function"
cp out ours
run 0 "$TALLY" annotate --stdio2 -f -v --demangle --percent-type local-period --show-nr-samples --disassembler-style intel -d shares \
	-i clock --symbol "$function" && test -s ours && cmp -s out ours
check "annotate accepts perf's names of options"
run 0 "$TALLY" annotate --stdio -i clock -d shares -n -M intel -s "$function" && cmp -s out ours
check "… and annotates the function given with -s"
done_testing

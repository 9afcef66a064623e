#!/bin/bash
# The options of perf record, stat and report: tally accepts each one, or refuses it and names a
# replacement.  Compares the effect of record's less usual options with perf's.  TAP; $TALLY is the
# binary, $SHARES MS [THREADS] a program that is busy for that time.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch PERF_CONFIG=/dev/null

run() { expected=$1; shift; timeout 60 "$@" >out 2>&1; status=$?; [ "$status" = "$expected" ] || { echo "status $status" >>out; false; }; }
has() { grep -qF -- "$1" out; }
times() { "$TALLY" script --stdio -i "$1" 2>>out | sed -nE 's/^[^\t].* ([0-9]+\.[0-9]{6}): .*/\1/p'; }
have perf || perf() { return 1; }
attributes() { perf evlist -v -i "$1" 2>>out | grep -o "$2[^,]*" | sort -u | tr '\n' ' '; }

"$TALLY" record -q -o probe -e cpu-clock true 2>out || skip_all "cpu-clock can't be sampled: $(head -1 out)"

# --- all of perf's -----------------------------------------------------------------------------------------------
for command in record stat report; do
	if ! have perf; then
		skip "no option of perf $command is unknown" "there is no perf"
		skip "the list of them is complete" "there is no perf"
		continue
	fi
	perf $command -h 2>&1 | grep -oE '^    (-., |    )--[a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u >options
	while read -r option; do
		timeout 10 "$TALLY" $command "$option" --no-such-thing >said 2>&1
		! grep -q "there is no option $option" said || echo "$option: $(head -1 said)"
	done <options >out
	check "no option of perf $command is unknown ($(wc -l <options) of them)" test "$(wc -l <options)" -gt 40 -a ! -s out
	sed -n "/^## .$command.: perf's options/,/^## [^-]*$/p" "$SOURCE/docs/compatibility.md" >listed
	while read -r option; do
		grep -qE -- "$option\`|$option[ =\`[]" listed || echo "$option"
	done <options >out
	check "the list of them is complete" test ! -s out
done
run 2 "$TALLY" stat --all-user true && has "-e cycles:u" && run 2 "$TALLY" report --hierarchy && has "--sort dso"
check "stat and report: an option that only perf has is refused, and the message names a replacement"
"$TALLY" record -q -e page-faults -c 1 -o faults true >out 2>&1
run 0 "$TALLY" report --stdio -f -v --inline -c 'tr*' -d '*' -i faults && run 0 "$TALLY" report --stdio -c 'nobody,*' -G -S '*' -i faults
check "perf's names of filters are accepted"
run 0 "$TALLY" record -q -BNPT -v --buildid-all --mmap-flush 4K --no-buffering --sample-cpu --strict-freq -k mono -e cpu-clock -o taken true
check "options for what tally always does are accepted"
run 0 "$TALLY" record -q -k 1 -i --inherit -z -C 0 -e cpu-clock -o taken true && run 0 "$TALLY" record -q -z 3 -e cpu-clock -o taken true &&
	run 0 "$TALLY" record -q --compression-level=0 -e cpu-clock -o plain true && run 2 "$TALLY" record -z30 true && has '22'
check "-z takes a level or none, -k perf's number; --inherit takes back -i"
run 0 "$TALLY" report --no-call-graph --stdio -i faults && run 0 "$TALLY" report -g --call-graph=no --stdio -i faults && run 2 "$TALLY" report -g folded && has "tally fold"
check "report: trees are turned off by --no-call-graph and --call-graph=no"
run 0 "$TALLY" script -F event -i faults && cp out all && run 0 "$TALLY" script --time '0, 99999999' -F event -i faults && cmp out all && [ -s all ] &&
	run 1 "$TALLY" script --time '0, 0.001' -F event -i faults; [ ! -s all ] || ! cmp -s out all
check "--time: a blank after the comma changes nothing"
run 2 "$TALLY" record --aio -o refused true && has "larger rings" && [ ! -e refused ]
check "the others are refused, and the message names a replacement"
run 2 "$TALLY" record -k boottime true && has CLOCK_MONOTONIC
check "clocks that tally does not support are refused"
run 0 "$TALLY" record --dry-run -o dry true && [ ! -e dry ] && run 2 "$TALLY" record --dry-run -e nosuch:event true
check "--dry-run only checks the options"

# --- what of each sample -----------------------------------------------------------------------------------------
for option in -I -Iip,sp --user-regs --user-regs=ip --kernel-callchains --user-callchains --transaction --no-bpf-event; do
	case $option in
	-I*) word=sample_regs_intr;; --user-r*) word=sample_regs_user;; --kernel*) word=exclude_callchain_user;;
	--user-c*) word=exclude_callchain_kernel;; --trans*) word=TRANSACTION;; *) word=bpf_event;;
	esac
	"$TALLY" record -q "$option" -e cpu-clock -F 5000 --call-graph fp -o one -- "$SHARES" 30 >out 2>&1
	check "$option" test "$(times one | wc -l)" -gt 0
	if ! have perf; then skip "… as perf requests it from the kernel" "there is no perf"; continue; fi
	perf record -q "$option" -e cpu-clock -F 5000 --call-graph fp -o two -- "$SHARES" 30 >>out 2>&1
	ours=$(attributes one $word) theirs=$(attributes two $word)
	echo "ours: $ours; perf's: $theirs" >>out
	check "… as perf requests it from the kernel" test "$ours" = "$theirs"
done
run 2 "$TALLY" record -Iip,nosuch true && has "is none of"
check "unknown registers are refused"
"$TALLY" record -q -e '{cpu-clock,page-faults}:S' --running-time -F 2000 -o one -- "$SHARES" 30 >out 2>&1
check "--running-time" test "$(times one | wc -l)" -gt 0
! have perf || check "… the samples contain the running time" grep -q TOTAL_TIME_RUNNING <(attributes one read_format)

# --- when --------------------------------------------------------------------------------------------------------
"$TALLY" record -q -D 100-400,1000-1300 -e cpu-clock -F 2000 -o ranges -- "$SHARES" 2000 >out 2>&1
# The gap between the ranges; a loaded machine that stops the program makes more gaps.  It runs for
# at least 2 s.
times ranges | awk 'NR > 1 && $1 - last > 0.4 { gaps++ } NR == 1 { first = $1 } { last = $1 }
	END { printf "%d samples, %d gaps, over %.3f s\n", NR, gaps, last - first; exit !(NR > 10 && gaps >= 1 && last - first < 1.5) }' >>out
check "-D 100-400,1000-1300 samples only in these times"
for wrong in 10- 20-10 10-20,15-30 a-b 10-20, ,10-20 -5; do
	run 2 "$TALLY" record -D "$wrong" true || break
done
check "invalid ranges are refused"

# --- whom --------------------------------------------------------------------------------------------------------
"$SHARES" 60000 4 >/dev/null & busy=$!
until [ "$(ls /proc/$busy/task | wc -l)" -ge 4 ]; do :; done
"$TALLY" record -q --per-thread -p $busy -e cpu-clock -F 2000 -o threads --duration 1s >out 2>&1
"$TALLY" report --stdio --sort tid --percent-limit 0 -i threads >>out 2>&1
kill $busy; wait $busy 2>/dev/null
check "--per-thread follows all threads of a process" test "$(grep -cE '^ *[0-9.]+% ' out)" -ge 4
! have perf || check "… as perf reads it" test "$(perf script -i threads 2>>out | grep -c cpu-clock)" = "$(times threads | wc -l)"
"$TALLY" record -q --per-thread -e cpu-clock -F 2000 -o threads -- "$SHARES" 100 >out 2>&1
check "… and those of a command" test "$(times threads | wc -l)" -gt 0
run 2 "$TALLY" record --per-thread -a true && has "excludes -a and -C"
check "… but is refused with CPUs"
if [ "$(id -u)" = 0 ] && have chrt; then
	"$TALLY" record -q -r 3 -e cpu-clock -o first -- sh -c 'sleep 0.1; chrt -p $PPID; echo; chrt -p $$' >out 2>&1
	check "-r: the recorder has the real-time priority, the command has not" test "$(grep -c SCHED_FIFO out)" = 1
else
	skip "-r: the recorder has the real-time priority, the command has not" "needs root, and chrt"
fi

# --- an event asks for the next file -----------------------------------------------------------------------------
run 1 "$TALLY" record --switch-output-event nosuch:event -e cpu-clock -o none true || has "there is no tracepoint" ||
	has "tracepoints can't be named here"
check "an unknown event ends the command"
if "$TALLY" record -q -e syscalls:sys_enter_sync -o probe true 2>out; then
	"$TALLY" record -q -e cpu-clock --switch-output-event syscalls:sys_enter_sync -o next -- \
		sh -c "'$SHARES' 100; sync; '$SHARES' 100; sync; '$SHARES' 100" >out 2>&1
	ls next.* >>out
	check "--switch-output-event: each hit starts a new file" test "$(ls next.* | wc -l)" = 3
	for file in next.*; do times "$file" | wc -l; done >counts
	check "… each with samples" test "$(grep -cv '^0$' counts)" = 3
	"$TALLY" record -q --overwrite -e cpu-clock --switch-output-event syscalls:sys_enter_sync -o flight -- \
		sh -c "'$SHARES' 100; sync; '$SHARES' 100" >out 2>&1
	check "… with --overwrite, each hit writes what the rings hold" test "$(ls flight.* | wc -l)" = 2
else
	skip "--switch-output-event" "tracepoints can't be recorded: $(head -1 out)"
fi
done_testing

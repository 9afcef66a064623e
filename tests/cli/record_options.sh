#!/bin/bash
# tally record's options for what to record and of which tasks, compared with perf's.  TAP; $TALLY
# is the binary, $SHARES MS [THREADS] spends 50, 30 and 20 % of its time in three functions,
# $GETPPID_LOOP N makes N system calls.
set -u
. "$(dirname "$0")/tap.sh"
trap 'rm -rf "$scratch"; [ -z "${group:-}" ] || rmdir "$group" 2>/dev/null' EXIT
cp "$TALLY" "$scratch/tally" && cp "$SHARES" "$scratch/shares" && cp "$GETPPID_LOOP" "$scratch/getppid_loop" && chmod 755 "$scratch" || exit 1
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch PERF_CONFIG=/dev/null

run() { expected=$1; shift; timeout 60 "$@" >out 2>&1; status=$?; [ "$status" = "$expected" ] || { echo "status $status" >>out; false; }; }
has() { grep -qF -- "$1" out; }
times() { sed -nE 's/^[^\t].* ([0-9]+\.[0-9]{6}): .*/\1/p'; }
samples() { ./tally script --stdio -i "$1" 2>>out | times | wc -l; }
same() {
	[ $has_perf = yes ] || return 0
	perf script -i "$1" 2>>out | times >perf.times
	./tally script --stdio -i "$1" 2>>out | times >tally.times
	[ -s perf.times ] && cmp perf.times tally.times >>out 2>&1
}
has_perf=no; command -v perf >/dev/null && perf --version >/dev/null 2>&1 && has_perf=yes
is_root=no; [ "$(id -u)" = 0 ] && is_root=yes

if ! ./tally record -q -o probe -e cpu-clock true 2>out; then
	echo "1..0 # SKIP cpu-clock can't be sampled: $(head -1 out)"
	exit 0
fi

# --- what of each sample, and beside them ------------------------------------------------------------------------
# perf prints the attributes of both files, which it and tally gave to the kernel.
attributes() { perf evlist -v -i "$1" 2>>out | grep -o "$2: 1\|$2" | sort -u | tr '\n' ' '; }
while read -r option words; do
	name="perf reads a recording with $option"
	program="./shares 30"
	[ "$option" != --all-kernel ] || program="./getppid_loop 300000"
	if ! ./tally record -q $option -F 5000 -e cpu-clock -o one -- $program >out 2>&1; then
		case $option in --phys-data|--all-kernel|--namespaces|-R)
			[ $is_root = yes ] || { skip "$name" "needs root"; continue; } ;;
		esac
		not_ok "$name"
		continue
	fi
	same one
	check "$name"
	[ $has_perf = yes ] || continue
	perf record -q $option -F 5000 -e cpu-clock -o two -- $program >>out 2>&1
	for word in $words; do
		ours=$(attributes one "$word"); theirs=$(attributes two "$word")
		echo "$word: '$ours', perf's '$theirs'" >>out
		[ -n "$ours" ] && [ "$ours" = "$theirs" ]
		check "$option requests $word from the kernel, as perf's does"
	done
done <<'OPTIONS'
-d ADDR DATA_SRC mmap_data
-W WEIGHT
--phys-data PHYS_ADDR
--data-page-size DATA_PAGE_SIZE
--code-page-size CODE_PAGE_SIZE
--switch-events context_switch
--namespaces namespaces
--all-cgroups CGROUP cgroup
--all-user exclude_kernel
--all-kernel exclude_user
OPTIONS
./tally record -q -i -e cpu-clock -F 4000 -o alone -- sh -c './shares 100 >/dev/null; true' 2>out &&
	! ./tally report --stdio --sort comm -i alone 2>>out | grep -q shares
check "-i: the children are not recorded"
for option in "-b" "-j any_call,u" "--call-graph lbr"; do
	timeout 20 ./tally record $option -e cpu-clock -o branches true >out 2>&1
	[ $? = 1 ] && has 'has no branch stacks' && has 'hint:' && [ ! -e branches ]
	check "$option is refused if there are no branch stacks, and the message gives another way"
done
if command -v strace >/dev/null && strace -o trace true 2>/dev/null && [ $has_perf = yes ]; then
	asked() { grep -m 1 'BRANCH_STACK' trace | grep -o 'branch_sample_type=[^,]*'; }
	strace -f -v -o trace -e perf_event_open ./tally record --call-graph lbr -e cpu-clock -o branches true >out 2>&1; ours=$(asked)
	strace -f -v -o trace -e perf_event_open perf record --call-graph lbr -e cpu-clock -o two true >>out 2>&1; theirs=$(asked)
	echo "$ours, perf's $theirs" >>out
	[ -n "$ours" ] && [ "$ours" = "$theirs" ]
	check "--call-graph lbr requests the same branches as perf"
else
	skip "--call-graph lbr requests the same branches as perf" "needs strace and perf"
fi

# --- fixed periods -----------------------------------------------------------------------------------------------
# One sample for a fixed number of hits, and each stands for that many.
./tally record -q -e page-faults -c 1 -o each -- ./shares 1 >out 2>&1
all=$(samples each)
for words in "-c 10 -e page-faults" "-e page-faults/period=10/"; do
	run 0 ./tally record -q $words -o some -- ./shares 1
	some=$(samples some)
	echo "$some of $all" >>out
	[ "$all" -gt 40 ] && [ "$some" -gt 0 ] && [ "$some" -le $((all / 10 + 5)) ] && same some
	check "$words: one sample in ten hits"
	[ "$(./tally script --stdio -F period -i some 2>>out | tr -d ' ' | sort -u)" = 10 ] &&
		./tally report -j -i some 2>>out | grep -qE '"period": ?'$((10 * some))'\b'
	check "$words: each sample counts ten hits"
done

# --- filters -----------------------------------------------------------------------------------------------------
run 2 ./tally record --filter 'a == 1' -e cpu-clock true && has 'must follow the -e'
check "a filter without an event before it is refused"
run 2 ./tally record -e cpu-clock --filter 'start 0x1000' true && has 'is not a tracepoint'
check "a filter by address is refused"
if ./tally record -q -a -e sched:sched_switch -o probe true 2>out; then
	run 1 ./tally record -e sched:sched_switch --filter 'prev_comm == "a" && prev_pidd > 0' true && has 'no such field' && has 'prev_pid,' &&
		grep -q '^ *\^' out
	check "the message for a wrong filter points at the fault"
	./tally record -q -a -e sched:sched_switch --filter 'prev_comm == "shares"' --filter 'next_pid != 0' -o filtered -- ./shares 300 4 >out 2>&1
	./tally script --stdio -i filtered >text 2>>out
	[ "$(grep -c 'prev_comm=shares' text)" -gt 0 ] && ! grep 'sched_switch:' text | grep -v 'prev_comm=shares' >>out &&
		! grep 'sched_switch:' text | grep 'next_pid=0 ' >>out && same filtered
	check "a filter passes the right hits; two filters pass those that pass both"
	sh -c 'echo $$ >own; exec ./tally record -q -a -e sched:sched_switch --exclude-perf -o filtered -- ./shares 100' >out 2>&1
	! ./tally script --stdio -i filtered 2>>out | grep "prev_comm=tally prev_pid=$(cat own) " >>out
	check "--exclude-perf leaves out tally's own hits"
	begin=$(date +%s%N)
	run 0 ./tally record -a -e 'syscalls:*' -o calls -- ./shares 100
	took=$((($(date +%s%N) - begin) / 1000000))
	echo "$took ms" >>out
	[ "$took" -lt 20000 ] && [ "$(./tally script --stdio -i calls 2>>out | times | wc -l)" -gt 10 ]
	check "hundreds of tracepoints are opened and closed in seconds" # perf waits for the kernel at each one: half a minute
else
	skip "filters" "tracepoints can't be recorded: $(head -1 out)"
fi

# --- what a timer for each task misses ---------------------------------------------------------------------------
if [ $is_root = yes ]; then # otherwise the kernel's part is not sampled
	run 0 ./tally record -e cpu-clock -F 99 -o short -- sh -c 'i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i + 1)); done' &&
		grep -q 'the samples cover [0-9]* of [1-9][0-9][0-9]* ms of CPU time: .*use -a or a higher -F' out
	check "a message says that tasks too short to be followed are missing"
	run 0 ./tally record -e cpu-clock -F 4999 -o long -- ./shares 300 && ! has 'the samples cover' &&
		run 0 ./tally record -e cpu-clock -c 7 --no-call-graph -o long -- ./shares 300 && ! has 'the samples cover' # a late timer
	check "… but not if samples stand for CPU time"
else
	skip "a message says that tasks too short to be followed are missing" "needs root"
fi

# --- whom --------------------------------------------------------------------------------------------------------
run 2 ./tally record -e cpu-clock -G some true && has 'add -a'
check "-G without -a is refused"
run 2 ./tally record -u no-such-user true && has "no user 'no-such-user'"
check "the message for an unknown user names it"
if [ $is_root = yes ] && setpriv --reuid=64321 --clear-groups true 2>/dev/null; then # a user of no other test
	setpriv --reuid=64321 --clear-groups ./shares 20000 >/dev/null &
	other=$!
	sleep 0.2
	run 0 ./tally record -u 64321 -e cpu-clock -o user -- sleep 0.5 && [ "$(samples user)" -gt 20 ] &&
		[ "$(./tally script --stdio -i user 2>>out | times | wc -l)" = "$(./tally script --stdio --pid $other -i user 2>>out | times | wc -l)" ]
	check "-u records only the user's processes"
	kill $other
	mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	group=${mount:+$mount/tally-test-$$}
	if [ -n "$group" ] && mkdir "$group" 2>/dev/null; then
		sh -c 'echo $$ >"$0/cgroup.procs"; exec ./shares 20000 >/dev/null' "$group" &
		inside=$!
		./shares 20000 >/dev/null & beside=$!
		sleep 0.2
		if run 0 ./tally record -a -e cpu-clock,task-clock -G "tally-test-$$" -F 999 -o group -- sleep 0.6; then
			./tally script --stdio -i group 2>>out | times >all; ./tally script --stdio -i group --pid $inside 2>>out | times >own
			wc -l all own >>out
			[ "$(wc -l <own)" -gt 10 ] && cmp all own >>out && same group
			check "-G records only the processes of a control group"
		else
			not_ok "-G records only the processes of a control group"
		fi
		kill $inside $beside
		wait
	else
		skip "-G records only the processes of a control group" "no control group can be made"
	fi
else
	skip "-u and -G" "need root"
fi

# --- commands on a descriptor --------------------------------------------------------------------------------------
# A loop that wakes for a pipe without a writer would take a CPU.  Other work can only hide that.
echo ping | (
	exec 3<&0 </dev/null
	TIMEFORMAT='%U %S'
	{ time ./tally record -q --control fd:3 -e cpu-clock -o piped -- sleep 2 2>>out; } 2>spent
)
cat spent >>out
awk '{ exit !($1 + $2 < 0.8) }' spent
check "--control waits without work when the other side of the pipe has gone"
echo "1..$number"

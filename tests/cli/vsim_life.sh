#!/bin/bash
# Processes, programs, threads and signals under the simulated PMU.  TAP; $PLAN_RUN runs under
# $LAUNCHER with a plan of its own; $TALLY is the binary; $WORKLOAD WAY TIMES N executes TIMES × 2N
# instructions in known ways, and libc's instructions, which are the same at each N.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
vsim=0x76736d instructions=0x1 stores=0x4 branches=0x8

run() { timeout 120 "$PLAN_RUN" "$LAUNCHER" "$@" >out 2>err </dev/null; }
total() { sed -n "s/^total $1 \([0-9]*\) .*/\1/p" out; }
field() { sed -n "s/^total $1 .* $2=\([0-9]*\).*/\1/p" out; }
has() { grep -q -- "$1" out; }

# grows WAY TIMES: 10,000 more iterations of the loop add the expected instructions, in each of
# TIMES
grows() {
	run -q -e $vsim:$instructions:i -- "$WORKLOAD" "$1" "$2" 10000 && local first=$(total 0) && [ -n "$first" ] &&
		run -q -e $vsim:$instructions:i -- "$WORKLOAD" "$1" "$2" 20000 && [ $(($(total 0) - first)) = $(($2 * 20000)) ]
}
for way in 'loop 3' 'threads 20' 'forks 12' 'vforks 3' 'execs 4' 'failing 5'; do
	check "no instruction is lost or counted twice: $way" grows $way
done

dies() {
	for way in "$1" loop; do
		run -q -e $vsim:$instructions:i -- "$WORKLOAD" "$way" 1 "$3" && [ "$(total 0)" -ge $(($3 * 2)) ] || return 1
		[ "$way" = loop ] || { has "^signal $2$" && [ ! -s err ]; } || return 1
	done
}
for signal in 'segv 11' 'term 15' 'int 2' 'abort 6' 'kill 9'; do
	check "counts of a program that a signal kills are kept, and nothing else is printed: $signal" dies $signal 300000
done

killed() { run -q -k 3 -e $vsim:$instructions:i -- "$WORKLOAD" asleep 1 300000 && has '^signal 9$' && [ "$(total 0)" -ge 600000 ]; }
check "counts of a sleeping program that is killed from outside are kept" killed

alone() {
	run -q -e $vsim:$instructions -e $vsim:$instructions:i -- "$WORKLOAD" forks 5 100000 &&
		[ "$(total 0)" -lt 600000 ] && [ "$(total 1)" -ge 1000000 ] &&
		run -q -e $vsim:$instructions -- "$WORKLOAD" threads 5 100000 && [ "$(total 0)" -lt 900000 ]
}
check "without inherit, only the first thread counts" alone

removed() {
	run -q -e $vsim:$instructions:r -e $vsim:$instructions -- "$WORKLOAD" execs 3 100000 &&
		[ "$(total 0)" -lt 400000 ] && [ "$(total 1)" -ge 600000 ]
}
check "with remove_on_exec, only the first program counts" removed

at_exec() { run -q -e $vsim:$instructions:xi -- "$WORKLOAD" execs 2 100000 && [ "$(total 0)" -ge 400000 ]; }
check "with enable_on_exec, counting begins with the first exec" at_exec

groups() {
	run -q -e $vsim:$instructions:i -e $vsim:$stores:ig -e $vsim:$instructions:i -- "$WORKLOAD" forks 5 1000 &&
		[ "$(total 0)" = "$(total 2)" ] && [ "$(total 1)" -gt 0 ] && [ "$(field 0 enabled)" = "$(field 0 running)" ]
}
check "members of a group count over the same time" groups

crowd() {
	run -q -e $vsim:$instructions:i:100000 -- "$WORKLOAD" crowd 700 1000 && has '^records .*fork=700 exit=701 lost=0' &&
		[ "$(total 0)" -ge 1400000 ] && has '^exit 0$'
}
check "700 threads at a time" crowd

weights() {
	run -q -e $vsim:$instructions:i:9973 -- "$WORKLOAD" forks 8 50000 || return 1
	local missing=$(($(total 0) - $(field 0 weight)))
	[ "$missing" -ge 0 ] && [ "$missing" -lt $((9 * 9973)) ] && [ "$(field 0 lost)" = 0 ]
}
check "samples' periods add up to the count, except after each process's last sample" weights

flood() {
	run -q -e $vsim:$instructions:i:7 -- "$WORKLOAD" loop 1 100000 && has 'lost=0$' &&
		[ "$(field 0 samples)" = $(($(total 0) / 7)) ]
}
check "a ring that is too small loses nothing: the program waits" flood

sideband() {
	run -e $vsim:$instructions:i:1000000 -- "$WORKLOAD" vforks 1 1000 || return 1
	local pid=$(sed -n 's/^comm pid=\([0-9]*\) .* exec$/\1/p' out | head -n 1)
	local child=$(sed -n "s/^fork pid=\([0-9]*\) ppid=$pid tid=\1 ptid=$pid$/\1/p" out)
	[ -n "$child" ] && has "^comm pid=$child tid=$child vsim_workload exec$" && has "^exit pid=$child ppid=$pid tid=$child" &&
		has "^mmap pid=$child .*/vsim_workload$" && has "^mmap pid=$pid .*/libc.so.6$" && has '^processes 2 executions 2 '
}
check "side-band records have maps, names, forks and exits like the kernel's" sideband

renamed() { run -e $vsim:$instructions:i:1000000 -- "$WORKLOAD" renamed 1 1000 && has '^comm pid=.* other name$'; }
check "a record tells a thread's new name" renamed

chains() {
	run -e $vsim:$instructions:ic:9973 -- "$WORKLOAD" deep 50 100000 || return 1
	# leaf, 51 times deep(), main, and libc's two frames below it, which are not below _start
	awk '/^sample/ && NF == 6 + 51 + 5 { whole++ } END { exit !(whole >= 18) }' out
}
check "call chains are complete, down to _start" chains

timer() { run -q -e $vsim:$instructions:i -- "$WORKLOAD" timer 1 20000 && has '^exit 0$'; }
check "timers' signals arrive" timer

same() {
	run -q -e $vsim:$instructions:i -e $vsim:$stores:i -- "$WORKLOAD" threads 10 5000 && grep ^total out >before &&
		run -q -e $vsim:$instructions:i -e $vsim:$stores:i -- "$WORKLOAD" threads 10 5000 && grep ^total out | cmp -s - before
}
check "the same program gives the same counts" same

same_turns() {
	run -q -e $vsim:$instructions:i -- "$WORKLOAD" turns 40 20000 && has '^exit 0$' && grep ^total out >before || return 1
	for _ in 1 2 3; do
		run -q -e $vsim:$instructions:i -- "$WORKLOAD" turns 40 20000 && grep ^total out | cmp -s - before || return 1
	done
}
check "also with threads that wait for each other: mutex, condition, barrier" same_turns

region() {
	run -q -r -e $vsim:$instructions:i -e $vsim:$branches:i -- "$WORKLOAD" region 3 1000 && local first=$(total 0) &&
		[ "$(total 1)" = 3000 ] && [ "$first" -ge 6003 ] && [ "$first" -le 6012 ] &&
		run -q -r -e $vsim:$instructions:i -- "$WORKLOAD" region 3 2000 && [ $(($(total 0) - first)) = 6000 ] &&
		run -q -r -e $vsim:$branches:i -- "$WORKLOAD" regions 3 300000 && [ "$(total 0)" = 1800000 ]
}
check "--region counts only between the marks of tally/roi.h, in each thread" region

function_alone() {
	run -q -r -f known_loop -e $vsim:$instructions:i -e $vsim:$branches:i -- "$WORKLOAD" threads 3 1000 &&
		[ "$(total 0)" = 6003 ] && [ "$(total 1)" = 3003 ] &&
		run -q -r -f deep -f known_loop -e $vsim:$branches:i -- "$WORKLOAD" deep 0 1000 && [ "$(total 0)" -lt 1010 ] &&
		run -r -f known_loop -e $vsim:$instructions:i:500 -- "$WORKLOAD" loop 2 1000 && [ "$(grep -c ^sample out)" = 8 ] &&
		run -q -r -f no_such_function -e $vsim:$instructions:i -- "$WORKLOAD" loop 1 10 && [ "$(total 0)" = 0 ]
}
check "--toggle counts only a function, with its callees, from its first instruction to its return" function_alone

by_tally() {
	"$TALLY" stat --provider simulated --toggle known_loop -j -e branches -- "$WORKLOAD" threads 3 1000 >out 2>&1 &&
		has '"value":3003,' &&
		"$TALLY" stat --provider simulated --region -j -e branches -- "$WORKLOAD" region 3 1000 >out 2>&1 && has '"value":3000,' &&
		"$TALLY" record --provider simulated --toggle known_loop -e instructions -c 500 -o data -- "$WORKLOAD" loop 2 1000 \
			>out 2>&1 && has ': 8 samples' && ! "$TALLY" stat --toggle known_loop -- true >out 2>&1 && has 'need --provider simulated'
}
check "stat and record with --toggle and --region" by_tally

unsimulated() {
	cp "$(type -P true)" own && chmod u+s own && printf '#!%s\n' "$PWD/own" >script && chmod +x script &&
		run -q -e $vsim:$instructions:i -- /bin/sh -c './own && ./script && echo ran' && has '^ran$' && has ' unsimulated 2 '
}
check "set-user-ID programs run without simulation, and are counted" unsimulated

refused() { run -q -e $vsim:0 -- /bin/true; grep -q 'the simulated PMU' err && ! has '^exit 0'; }
check "an invalid event is refused with a reason" refused
echo "1..$number"

#!/bin/bash
# SPEC G4: on perf's recordings, `tally script` prints the same as `perf script`, with and without
# inlined functions, except for differences whose causes compare_script.py knows.  TAP; $TALLY is
# the binary, $WORKLOAD the program of record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export HOME=$scratch # perf stores copies of recorded files there

# perf's thread that listens for BPF programs sleeps for a second at the end of each recording, so
# only a few recordings use it.
bpf=--no-bpf-event
record() { timeout 60 perf record $bpf -q -o perf.data "$@" >record.out 2>&1; }

inlines=--no-inline
# same NAME: compares both outputs for ./perf.data; of a whole machine, only the names in $command's
# samples
command=
same() {
	timeout 100 perf script $inlines -i perf.data >perf.txt 2>perf.err
	timeout 100 "$TALLY" script --stdio $inlines -i perf.data >tally.txt 2>tally.err || { not_ok "$1: tally script fails"; return; }
	timeout 100 "$TALLY" script --stdio --records -i perf.data >records.txt 2>/dev/null
	if "$here/compare_script.py" perf.txt tally.txt records.txt $command >out; then
		ok "$1 ($(tail -n 1 out | sed 's/ [a-z-]* 0//g'))"
		tail -n 1 out >>causes
	else
		cp perf.data "${TALLY_KEEP:-/dev/null}" 2>/dev/null
		not_ok "$1"
	fi
}

# compare NAME perf-record-arguments…
compare() {
	name=$1
	shift
	if ! record "$@"; then
		skip "$name" "perf can't record it: $(head -c 100 record.out | tr '\n#' '  ')"
		return
	fi
	same "$name"
}

# with PROGRAM NAME perf-record-arguments…: skipped if the program is missing
with() {
	program=$1
	shift
	if have "$program"; then compare "$@"; else skip "$1" "no $program"; fi
}

if ! have perf || ! have python3 || ! { record -e cpu-clock true || record -e cpu-clock true; }; then # it may crash
	echo "1..0 # SKIP needs perf, which may record, and python3"
	exit 0
fi

QUERY='with recursive c(x) as (select 1 union all select x+1 from c where x<200000) select sum(x) from c'
cat >program.py <<'P'
import json
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
print(f(20), len(json.dumps(list(range(100000)))))
P
cat >program.js <<'P'
let sum = 0;
function step(i) { return Math.sqrt(i) + JSON.stringify({ i }).length; }
for (let i = 0; i < 300000; i++) sum += step(i);
console.log(sum);
P
cat >program.cc <<'P'
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace ns {
template <class T> struct Words {
	__attribute__((noinline)) T go(int n) {
		std::map<std::string, T> map;
		for (int i = 0; i < n; i++) map[std::to_string(i * 7919 % n)] += i;
		std::vector<std::string> words;
		for (auto &pair : map) words.push_back(pair.first);
		std::sort(words.begin(), words.end());
		return map[words[n / 3]];
	}
};
}
int main() { ns::Words<long> words; long sum = 0; for (int i = 0; i < 3; i++) sum += words.go(40000); return sum == 1; }
P
cat >inlines.cc <<'P'
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>
namespace ns {
template <class T> struct Mixer {
	T state = 1;
	inline __attribute__((always_inline)) T step(T value) { state = state * 6364136223846793005u + value; return state >> 7; }
	inline __attribute__((always_inline)) T twice(T value) { return step(step(value)); }
};
static inline __attribute__((always_inline)) uint64_t fold(Mixer<uint64_t> &mixer, int n) {
	uint64_t sum = 0;
	for (int i = 0; i < n; i++) sum += mixer.twice(i);
	return sum;
}
__attribute__((noinline)) uint64_t outer(int n) { Mixer<uint64_t> mixer; return fold(mixer, n) + 1; }
__attribute__((noinline)) uint64_t sorted(int n) {
	std::vector<uint64_t> values;
	Mixer<uint64_t> mixer;
	for (int i = 0; i < n; i++) values.push_back(mixer.twice(i));
	std::sort(values.begin(), values.end(), [](uint64_t a, uint64_t b) { return a % 1000 < b % 1000; });
	return values[n / 2];
}
}
int main() { uint64_t sum = 0; for (int i = 0; i < 30; i++) sum += ns::outer(500000) + ns::sorted(20000); printf("%d\n", sum == 7); }
P
cxx=$WORKLOAD
if have g++ && g++ -O2 -g program.cc -o program_cc 2>/dev/null; then cxx=./program_cc; fi

clock() { compare "$1" -e cpu-clock "${@:2}"; }
bpf=
clock "a clock" -F 999 "$WORKLOAD" spin
bpf=--no-bpf-event
clock "frame pointers" -F 999 -g "$WORKLOAD" spin
clock "stack copies" -F 999 --call-graph dwarf "$WORKLOAD" spin
clock "stack copies of 16 KiB, compressed" -F 999 -z --call-graph dwarf,16384 "$cxx"
clock "C++ with frame pointers" -F 999 -g "$cxx"
clock "threads that name themselves" -F 999 -g "$WORKLOAD" threads
clock "a signal's handler" -F 999 -g "$WORKLOAD" signals
clock "a signal's handler, by stack copies" -F 999 --call-graph dwarf "$WORKLOAD" signals
# The samples in rt_sigreturn(2) have the address behind __restore_rt, which has no size.
clock "the ends of signals' handlers" -F 4999 -g python3 -c \
	'import os, signal; signal.signal(10, lambda *_: 0); [os.kill(os.getpid(), 10) for _ in range(200000)]'
clock "forks and execs" -F 4999 -g sh -c 'for i in 1 2 3; do ls -l /usr/bin | sort | head -3; done; (exec ls)'
clock "compressed" -z -F 4999 "$WORKLOAD" spin
clock "per thread" --per-thread -F 999 "$WORKLOAD" spin
clock "context switches" --switch-events -F 499 "$WORKLOAD" threads
clock "namespaces" --namespaces -F 499 "$WORKLOAD" threads
clock "cgroups" --all-cgroups -F 499 "$WORKLOAD" threads
clock "addresses and data maps" -d -F 999 "$WORKLOAD" faults
clock "registers" --user-regs=ip,sp,bp -F 999 "$WORKLOAD" spin
clock "weights and physical addresses" -d -W -F 999 "$WORKLOAD" spin
clock "no build-ids, no buffering" -B --no-buffering -F 999 "$WORKLOAD" spin
clock "build-ids in the map records" --buildid-mmap -g -F 999 "$WORKLOAD" spin
clock "times of running" --running-time -F 999 "$WORKLOAD" spin
clock "counts at each thread's end" -s -F 999 "$WORKLOAD" threads
bpf=
# perf's offset of a memfd's first bytes has fewer digits than any address.
printf '%s\n' 'jit 7 [000] 1.5: 1 cpu-clock: ' $'\t27 [unknown] (/memfd:code)' >memfd.perf
printf '%s\n' 'jit 7 [000] 1.5: 1 cpu-clock: ' $'\t7f0123456027 f+0x7 (/tmp/perf-7.map)' >memfd.tally
check "an address in another command's memfd is compared by its place in a page" \
	eval '"$here/compare_script.py" memfd.perf memfd.tally /dev/null other >out &&
	! "$here/compare_script.py" memfd.perf <(sed s/027/028/ memfd.tally) /dev/null other >>out'
command=${WORKLOAD##*/}
clock "the whole machine" -a -g -F 499 "$WORKLOAD" spin
command=
bpf=--no-bpf-event
# perf shows inlined functions in stacks that it unwinds itself.
inlines=
if have g++ && g++ -O2 -g inlines.cc -o inlines 2>/dev/null && have addr2line; then
	clock "inlined functions" -F 999 --call-graph dwarf ./inlines
	clock "functions inlined in themselves" -F 499 --call-graph dwarf "$cxx"
	cp perf.data read.data
	clock "inlined functions of a C program" -F 499 --call-graph dwarf "$TALLY" report --stdio -i read.data
else
	skip "inlined functions" "no g++, or no addr2line for perf"
fi
inlines=--no-inline
compare "page faults" -e page-faults -c 1 -d "$WORKLOAD" faults 0.02
compare "several events" -e task-clock,context-switches,cpu-migrations,minor-faults,major-faults -g "$WORKLOAD" threads
compare "user's and kernel's part" -e cpu-clock:u,cpu-clock:k -F 999 "$WORKLOAD" faults
compare "a group" -e '{cpu-clock,page-faults}' -F 999 "$WORKLOAD" faults
compare "a group that its leader samples" -e '{cpu-clock,page-faults,minor-faults}:S' -F 999 "$WORKLOAD" faults
compare "a group that its leader samples, with stacks" -e '{cpu-clock,page-faults}:S' -g -F 999 "$WORKLOAD" faults

compare "scheduler tracepoints" -a -e sched:sched_switch,sched:sched_wakeup,sched:sched_process_exec,sched:sched_process_fork sh -c 'ls >/dev/null; sleep 0.05'
compare "all scheduler tracepoints" -a -e 'sched:*' sh -c 'ls >/dev/null; sleep 0.05'
compare "interrupts and timers" -a -e 'irq:*,timer:*' sleep 0.2
calls=$(for call in openat read write close mmap mprotect newfstatat statx getdents64 execve brk ioctl futex; do
	printf 'syscalls:sys_enter_%s,syscalls:sys_exit_%s,' $call $call; done)
compare "system calls" -e "${calls%,}" ls -l /usr
compare "raw system calls" -e raw_syscalls:sys_enter,raw_syscalls:sys_exit ls -l /usr
compare "memory tracepoints" -e 'kmem:*' ls /usr
compare "tasks, signals, work queues" -a -e 'task:*,signal:*,workqueue:*' sh -c 'ls >/dev/null & wait; kill -CONT $$'
compare "file systems and blocks" -a -e 'writeback:*,block:*,filemap:*' sh -c 'echo x >file; sync file'
compare "tracepoints with stacks" -g -e sched:sched_switch,cpu-clock -F 999 "$WORKLOAD" threads
inlines='--no-inline -G'
compare "tracepoints without their stacks" -g -e sched:sched_switch,cpu-clock -F 999 "$WORKLOAD" threads
inlines=--no-inline

"$WORKLOAD" spin 3 & target=$!
name="a process that runs already"
if record -e cpu-clock -g -F 499 -p $target -- sleep 0.3; then same "$name"; else skip "$name" "perf can't attach"; fi
kill $target 2>/dev/null
wait $target 2>/dev/null
perf record -q -o - -e cpu-clock -g -F 999 "$WORKLOAD" spin 2>/dev/null | cat >perf.data
same "a pipe"
perf record $bpf -q -o - -a -e sched:sched_switch -- sleep 0.1 2>/dev/null | cat >perf.data
if [ -s perf.data ]; then same "tracepoints down a pipe"; else skip "tracepoints through a pipe" "perf can't record it"; fi

with python3 "python" -e cpu-clock -g -F 999 python3 program.py
with python3 "python by stack copies" -e cpu-clock --call-graph dwarf -F 499 python3 program.py
with sqlite3 "sqlite" -e cpu-clock -g -F 999 sqlite3 :memory: "$QUERY"
with sqlite3 "sqlite by stack copies" -e cpu-clock --call-graph dwarf -F 999 sqlite3 :memory: "$QUERY"
with g++ "a compiler" -e cpu-clock,page-faults -g -F 999 g++ -O2 -c program.cc -o /dev/null
with xz "xz with threads" -e cpu-clock -g -F 999 xz -k -c -1 --threads=2 "$(readlink -f "$(command -v perf)")"
with node "node" -e cpu-clock -g -F 999 node program.js
with node "node with a map of its code" -e cpu-clock -g -F 999 node --perf-basic-prof program.js
rm -f /tmp/perf-*.map.tally-test

# ---- damage, foreign files, what a terminal gets --------------------------------------------------------
# Mostly samples, so that half of the file ends in samples; one buffer, so that the records that a
# sample needs come before it.
record --per-thread -e cpu-clock -c 100000 "$WORKLOAD" spin 0.3
refuses() { "$TALLY" script --stdio -i "$1" >out 2>&1; [ $? = 1 ] && grep -qF -- "$2" out; }
: >empty
check "for an empty file, the message says that it is empty" refuses empty 'the file is empty'
echo 'all work and no play' >text
check "text is refused as no recording" refuses text "it is text"
gzip -c text >text.gz
check "a compressed file is judged by its content" refuses text.gz "it is text"
check "for a program, the message says so" refuses "$TALLY" "an ELF file"
check "for a folder, the message says so" refuses . 'is a directory'
check "the message names the missing file" refuses nowhere 'o such file'
size=$(stat -c %s perf.data)
head -c $((size / 2)) perf.data >cut
cut_is_used() {
	"$TALLY" script --stdio -i cut >cut.txt 2>out || return 1
	sed -i -E 's/ +cpu-clock(:u)?: +/ cpu-clock: /' cut.txt tally.txt # the name with its modifier is at the end
	grep -q 'damaged at offset [0-9]*' out || return 1
	[ "$(wc -l <cut.txt)" -gt 10 ] && head -n "$(wc -l <cut.txt)" tally.txt | diff cut.txt - >>out
}
"$TALLY" script --stdio -i perf.data >tally.txt 2>/dev/null
check "records before the damage are used, and the message gives its offset" cut_is_used
head -c 60 perf.data >head
check "a file without its beginning is refused" refuses head 'damaged at offset'

if have script; then
	cp "$WORKLOAD" work && record -e cpu-clock -F 999 ./work escapes
	script -qec "PAGER=cat TERM=xterm \"\$TALLY\" script --stdio -i perf.data" /dev/null </dev/null >out 2>&1
	check "a command's escape sequences don't reach the terminal" eval "grep -q 'red' out && ! grep -q \$'\\033\\[31m' out"
else
	skip "a command's escape sequences don't reach the terminal" "no script(1)"
fi
"$TALLY" script --stdio -i perf.data 2>err | head -n 1 >out
check "a reader that closes the pipe early is no error" [ ! -s err ]
"$TALLY" script --records --stdio -i perf.data >out
check "--records shows each record's fields" eval 'grep -q " MMAP2 .* file=.*work" out && grep -q " COMM .*comm=" out && grep -q " SAMPLE .* ip=0x" out && grep -q " ID_INDEX .*id=[0-9]* idx=" out'

# lines AWK-CONDITION: prints the lines of tally.txt that match, by comm (padded to 16, may contain
# blanks), $1 tid, $2 [cpu], $3 time:, $5 event:
lines() { awk '{ all = $0; comm = substr($0, 1, 16); sub(/^ +/, "", comm); $0 = substr($0, 18) } '"$1"' { print all }' tally.txt; }
# filtered AWK-CONDITION script-arguments…: prints exactly those lines
filtered() {
	lines "$1" >expected.txt
	shift
	timeout 60 "$TALLY" script --stdio -i perf.data "$@" >tally.part 2>err # on a busy machine the kernel throttles, which is reported there
	[ -s expected.txt ] && ! cmp -s expected.txt tally.txt && diff expected.txt tally.part >out
}
# On all CPUs, with whatever else they run; as short as possible.
if record -a -e cpu-clock,task-clock -F 2000 sh -c 'cp "$(command -v sleep)" "my sleep"
	for i in 1 2 3; do "./my sleep" 0.01; ls -R /usr/include >/dev/null; done & grep -r nothing /usr/share/doc; wait' &&
	"$TALLY" script --stdio -i perf.data >tally.txt 2>/dev/null && sed -n '$=' tally.txt | grep -q ...; then
	tid=$(lines 'comm == "grep"' | awk '{ print substr($0, 18) + 0; exit }')
	middle=$(awk '{ line[NR] = substr($0, 18) } END { split(line[int(NR / 2)], part); print part[3] }' tally.txt)
	middle=${middle%:}
	check "--tid selects a thread's samples" filtered "\$1 == $tid" --tid "$tid"
	check "--comm selects a command's samples" filtered 'comm == "grep" || comm == "ls"' --comm grep,ls
	check "--cpu selects a CPU's samples" filtered '$2 == "[000]"' --cpu 0
	for list in 0, 00 1,0 0-1; do
		perf script -i perf.data -F tid,cpu,time,event --cpu "$list" 2>/dev/null | sort >perf.part
		[ -s perf.part ] || continue # it shows nothing for missing CPUs
		"$TALLY" script --stdio -i perf.data -F tid,cpu,time,event --cpu "$list" 2>err | sort >tally.part
		check "--cpu '$list' selects the same as in perf" diff perf.part tally.part
	done
	"$TALLY" script --stdio -i perf.data -C 0-1 >expected.txt 2>err
	"$TALLY" script --stdio -i perf.data -C " 0, 1 ," >tally.part 2>err
	check "… and the whole of a list with blanks, of which perf reads only the first part" cmp expected.txt tally.part
	check "--event selects an event's samples" filtered '/ task-clock[:a-zA-Z]*: /' --event task-clock
	check "--time selects the samples after a time" filtered "substr(\$3, 1, length(\$3) - 1) + 0 >= $middle" --time "$middle,"
	for share in 30% 10%/4 5%-15%,50.5%-100%; do
		perf script -i perf.data -F tid,cpu,time,event --time $share 2>/dev/null | sort >perf.part
		"$TALLY" script --stdio -i perf.data -F tid,cpu,time,event --time $share 2>err | sort >tally.part
		check "--time $share selects the same part as perf" cmp perf.part tally.part
	done
	check "filters can be combined" filtered "\$1 == $tid && / cpu-clock[:a-zA-Z]*: /" --tid "$tid" -e cpu-clock
else
	skip "a warning tells of filters that select nothing" "perf can't record it"
fi
timeout 60 "$TALLY" record -q -e cpu-clock -o - true 2>err >pipe.data
"$TALLY" script --stdio -i - --time 10% <pipe.data >out 2>err
check "--time with a share is refused for a pipe, whose end is unknown" eval '[ ! -s out ] && grep -q "came from a pipe" err && grep -q "^hint: give START,END" err'
check "an unknown event is an error" eval '! "$TALLY" script --event nope -i pipe.data >out 2>&1 && grep -q "no event .nope" out'
awk '{ for (i = 1; i < NF; i += 2) sum[$i] += $(i + 1); recordings++ }
     END { printf "# in all: recordings %d", recordings; for (name in sum) printf ", %s %d", name, sum[name]; print "" }' causes
done_testing

#!/bin/bash
# The process provider (docs/process.md): stat's figures beside the kernel's, and recordings of programs
# whose shares are known.  TAP; $TALLY is the binary in the build tree, beside the preloaded object, $SHARES
# the program of shares.c.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1

# run STATUS command…: standard output goes to ./out, standard error to ./err
run() { expected=$1; shift; "$@" >out 2>err; status=$?; [ "$status" = "$expected" ]; }
says() { grep -qF -- "$1" err; }
inside() { local command=$1; shift; "$TALLY" "$command" --provider process "$@"; }
# json FILE EXPRESSION: of the last object (d), all of them (docs), and the events (e) of the last
json() { python3 -c '
import json, sys
docs = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
d = docs[-1]
e = {x["name"]: x["value"] for x in d["events"]}
if not eval(sys.argv[2]):
    sys.exit("false: " + sys.argv[2] + " of " + str(e))' "$@"; }

run 0 inside stat true || skip_all "this tally has no process provider: $(head -n 1 err)"

# Three threads, two forked children and the main thread use
# 100 ms each; a program that a child executes uses 200 ms more.
cat >family.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double used_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}
static volatile unsigned long sink;
__attribute__((noinline)) void burn(double s)
{
	double end = used_s() + s;
	while (used_s() < end)
		for (unsigned i = 0; i < 1000; i++)
			sink += i;
}
__attribute__((noinline)) void *in_thread(void *argument)
{
	burn(0.1);
	return argument;
}
__attribute__((noinline)) void in_child(void) { burn(0.1); }
__attribute__((noinline)) void in_program(void) { burn(0.2); }
int main(int argc, char **argv)
{
	pthread_t threads[3];
	if (argc > 1) {
		in_program();
		return 3;
	}
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, in_thread, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++)
		if (!fork()) {
			in_child();
			if (i)
				execl("./again", "again", "program", (char *)NULL);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	burn(0.1);
	puts("done");
	return 7;
}
C
${CC:-cc} -O1 -g -pthread -o family family.c && cp family again || exit 1

# Sleeps 50 times, touches 2000 pages.
cat >moves.c <<'C'
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	char *memory = mmap(NULL, 2000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(memory, 2000 * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < 2000; i++)
		memory[i * 4096] = 1;
	for (int i = 0; i < 50; i++)
		usleep(1000);
	return 0;
}
C
${CC:-cc} -O1 -o moves moves.c || exit 1

# Uses 100 ms before it reads a line, and 200 ms after it.
cat >waits.c <<'C'
#include <stdio.h>
#include <time.h>
static double used_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}
int main(void)
{
	while (used_s() < 0.1)
		;
	puts("ready");
	fflush(stdout);
	getchar();
	for (double end = used_s() + 0.2; used_s() < end;)
		;
	return 0;
}
C
${CC:-cc} -O1 -o waits waits.c || exit 1

# --- stat ----------------------------------------------------------------------------------------------------------
run 7 inside stat ./family && [ "$(cat out)" = done ] && [ "$(grep -c '(process)' err)" = 4 ]
check "stat: figures are marked; output and exit status are the program's"

run 7 inside stat -j -e task-clock,cpu-clock ./family && json err '790e6 < e["task-clock"] < 840e6 and abs(e["task-clock"] - e["cpu-clock"]) < 1e6'
check "time of threads, forked children and executed programs is counted once"
run 7 inside stat -j -e task-clock ./family && json err 'abs(d["user_ns"] + d["system_ns"] - e["task-clock"]) < 10e6'
check "the time is what the kernel says that the command used"
run 7 inside stat -j --no-inherit -e task-clock ./family && json err '100e6 <= e["task-clock"] < 110e6'
check "--no-inherit counts the first thread alone"

events=page-faults,minor-faults,major-faults,context-switches,cpu-migrations
run 0 inside stat -j -e $events ./moves && json err \
	'2000 <= e["page-faults"] < 2300 and e["page-faults"] == e["minor-faults"] + e["major-faults"] and e["context-switches"] >= 50'
check "faults and switches"
cp err inside.json
if run 0 "$TALLY" stat --provider kernel -j -e $events ./moves && json err 'all(x["source"] == "kernel" for x in d["events"])'; then
	cat err >>inside.json
	json inside.json 'abs(docs[0]["events"][0]["value"] - e["page-faults"]) < 150' 2>err
	check "page faults are the kernel's, but for those of the object"
else
	skip "page faults are the kernel's, but for those of the object" "the kernel counts nothing here"
fi

run 0 inside stat -j -e '{task-clock,page-faults},dummy' ./moves &&
	json err '[x["group"] for x in d["events"]][:2] == [0, 0] and len({x["enabled_ns"] for x in d["events"]}) == 1 and e["dummy"] == 0'
check "groups are counted together"
run 7 inside stat -j -e duration_time,user_time,task-clock ./family && json err 'e["duration_time"] > 2e8 and e["user_time"] < e["task-clock"] + 20e6'
check "tally's own events are counted, too"
run 7 inside stat -r 3 -j -e task-clock ./family && json err 'd["runs"] == 3 and 790e6 < e["task-clock"] < 840e6'
check "-r counts each run anew"
run 7 inside stat -I 100 -j -e task-clock ./family && json err 'len(docs) >= 5 and 790e6 < sum(x["events"][0]["value"] or 0 for x in docs) < 840e6'
check "the figures of -I add up"
run 0 inside stat -j -e wall-clock,task-clock sleep 0.3 && json err '295e6 < e["wall-clock"] < 2e9 and e["task-clock"] < 50e6'
check "wall-clock runs while a thread sleeps"

mkfifo ctl ack line said
inside stat -j -o file -D -1 --control fifo:ctl,ack -e task-clock ./waits <line >said 2>err &
pid=$!
exec 7>line 9<said 8>ctl
read -r word <&9
echo enable >&8
read -r answer <ack
echo go >&7
exec 7>&- 8>&- 9<&-
wait $pid && [ "$word" = ready ] && [ "$answer" = ack ] && json file '170e6 < e["task-clock"] < 210e6' 2>out
check "--control switches counting on in a program that runs"

refuses() { local reason=$1; shift; run 2 "$@" && says "$reason" && says hint && ! grep -q done out; }
refuses "can't be reached" inside stat -e cycles ./family && says '--provider simulated' &&
	refuses "can't be reached" inside record -o none -e instructions ./family &&
	refuses "can't be told apart" inside stat -e page-faults:u ./family &&
	refuses "can't be measured from inside" inside stat -p $$ &&
	refuses "can't be measured from inside" inside record -o none -a
check "what a program can't measure itself is refused with a way out"
run 1 inside record -o none -e page-faults ./family && says 'only task-clock' && says hint &&
	run 2 inside record -o none --kernel-callchains ./family && says 'needs the kernel'
check "what can't be sampled is refused, too"

# --- record --------------------------------------------------------------------------------------------------------
# near FILE: the shares in ./report are within two points of those that the program printed in FILE.  The program looks
# at its clock between them, which takes one to three hundredths of its time: they are shares of the rest.
near() { python3 -c '
import re, sys
told = {name: float(number) for name, number in (line.split() for line in open(sys.argv[1])) if name != "seconds"}
found = {}
for line in open("report"):
    match = re.match(r"\s*([\d.]+)%\s.*\b(half|third|fifth)\s*$", line)
    if match:
        found[match.group(2)] = found.get(match.group(2), 0) + float(match.group(1))
rest = sum(found.values())
if rest < 90 or any(abs(100 * found.get(name, 0) / rest - share) > 2 for name, share in told.items()):
    sys.exit(f"{found} instead of {told}")' "$1" 2>>err; }
show() { "$TALLY" report --stdio -g none --inline no "$@" >report 2>>err; }
# Prints the sum of the weights in ms.
weight() { "$TALLY" script --stdio -F period -i "$1" 2>>err | awk '{ sum += $1 } END { printf "%d", sum / 1e6 }'; }

run 0 inside record -F 3999 -o shares.data "$SHARES" 2000 && cp out told && show -i shares.data && near told
check "a program's functions have the shares of the time that they take"
run 0 inside record -F 3999 -o threads.data "$SHARES" 1000 4 && cp out told && show -i threads.data && near told
check "… in four threads"
sum=$(weight shares.data)
[ "$sum" -ge 1960 ] && [ "$sum" -le 2060 ] || { echo "$sum ms" >>err; false; }
check "the weights of the samples are the program's time"
"$TALLY" script --stdio -i shares.data >out 2>>err && python3 -c '
import re, sys
chains = [re.findall(r"^\s+[0-9a-f]+ (\w+)", chain, re.M) for chain in open("out").read().split("\n\n")]
chains = [chain for chain in chains if "spend" in chain]
whole = [chain for chain in chains if chain[chain.index("spend") + 1] == "main" and chain[-1] == "_start"]
sys.exit(len(whole) < 0.98 * len(chains) or len(chains) < 1000)'
check "call chains go from the functions to the program's start"

run 0 inside record --call-graph fp -o fp.data "$SHARES" 300 && says 'copies of the stack' && show --children -i fp.data && grep -q ' main$' report
check "--call-graph fp takes copies all the same, and says so"

run 7 inside record -F 1999 -o family.data ./family && [ "$(cat out)" = done ]
check "record: output and exit status are the program's"
"$TALLY" report --stdio -g caller -i family.data >report 2>>err && "$TALLY" report --stdio -g none --inline no --children -i family.data >report 2>>err
python3 -c '
import re, sys
total = {}
for line in open("report"):
    match = re.match(r"\s*([\d.]+)%\s.*\b(in_thread|in_child|in_program)\s*$", line)
    if match:
        total[match.group(2)] = total.get(match.group(2), 0) + float(match.group(1))
truth = {"in_thread": 37.5, "in_child": 25, "in_program": 25}
if any(abs(total.get(name, 0) - share) > 3 for name, share in truth.items()):
    sys.exit(f"{total} instead of {truth}")' 2>>err
check "threads, forked children and executed programs have their shares"
sum=$(weight family.data)
[ "$sum" -ge 780 ] && [ "$sum" -le 850 ] || { echo "$sum ms" >>err; false; }
check "… and their weights"
"$TALLY" report --stdio -g none -s comm -i family.data >report 2>>err && grep -q '% *family$' report && grep -q '% *again$' report
check "an executed program has its own name"

run 0 inside record -D 0 -e wall-clock -F 200 -o wall.data sleep 0.5 && sum=$(weight wall.data) && [ "$sum" -ge 450 ]
check "wall-clock samples a thread that sleeps"

# A sample after a long system call weighs its time.
cat >populate.c <<'C'
#include <stddef.h>
#include <sys/mman.h>
int main(void)
{
	for (int i = 0; i < 10; i++) {
		void *memory = mmap(NULL, 200 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		munmap(memory, 200 << 20);
	}
	return 0;
}
C
${CC:-cc} -O1 -o populate populate.c && run 0 inside record -F 4000 -o populate.data ./populate && ! says 'samples cover'
check "few samples of much time are no reason for a warning"

run 0 inside record -c 1000000 -o fixed.data "$SHARES" 300 && ! says 'samples cover' &&
	run 0 inside record -e wall-clock -c 5000000 -o wall.data sleep 0.5 && sum=$(weight wall.data) && [ "$sum" -ge 450 ]
check "… nor is a fixed period, and its samples have their weights"

# Rings of killed processes are used again: there are 1,024, and tally looks for them a few times a second.
cat >killed.c <<'C'
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 1100; i++) {
		if (!fork())
			kill(getpid(), SIGKILL);
		wait(NULL);
		usleep(1500);
	}
	return 0;
}
C
${CC:-cc} -O1 -o killed killed.c && run 0 inside record -o killed.data ./killed && ! says unrecorded
check "rings of killed processes are used again"
run 0 inside stat -r 2 -j -e task-clock,page-faults ./killed && json err 'e["task-clock"] > 10e6' && ! says unrecorded
check "… and their places, if nothing is recorded"

echo 'int main(void) { for (volatile unsigned i = 0; i < 200000000; i++) ; return 0; }' >static.c
if ${CC:-cc} -O1 -static -o static static.c 2>/dev/null; then
	run 0 inside stat sh -c './static; :' && says '1 program ran uncounted' && says 'of the command'"'s CPU time was counted" && says '(wait4)'
	check "time of programs that can't be entered is told of"
else
	skip "time of programs that can't be entered is told of" "no static programs can be linked"
fi

# Large transfers: the kernel ends them early if a signal comes.
cat >transfers.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
enum { SIZE = 32 << 20, PIECES = 100 };
static char bytes[SIZE];
static unsigned faults;
static void expect(const char *what, ssize_t got)
{
	if (got == SIZE)
		return;
	faults++;
	fprintf(stderr, "%s: %zd\n", what, got);
}
static pid_t reader(int fd, int other)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	close(other);
	while (read(fd, bytes, 65536) > 0)
		;
	_exit(0);
}
int main(void)
{
	struct iovec pieces[PIECES];
	size_t each = SIZE / PIECES;
	for (size_t i = 0; i < PIECES; i++)
		pieces[i] = (struct iovec){ bytes + i * each, i + 1 < PIECES ? each : SIZE - i * each };
	for (int i = 0; i < 8; i++) {
		int ends[2];
		if (i % 2 ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
			return 1;
		pid_t pid = reader(ends[0], ends[1]);
		expect("write", write(ends[1], bytes, SIZE));
		expect("writev", writev(ends[1], pieces, PIECES));
		if (i % 2 == 0)
			expect("send", send(ends[1], bytes, SIZE, 0));
		close(ends[0]);
		close(ends[1]);
		waitpid(pid, NULL, 0);
	}
	int zero = open("/dev/zero", O_RDONLY), random = open("/dev/urandom", O_RDONLY);
	for (int i = 0; i < 8; i++)
		expect("read", read(zero, bytes, SIZE));
	expect("read of /dev/urandom", read(random, bytes, SIZE));
	return faults > 0;
}
C
${CC:-cc} -O1 -o transfers transfers.c && run 0 timeout 100 "$TALLY" record --provider process -F 1999 -o transfers.data ./transfers
check "large reads and writes are whole"

if have perf && perf report --stdio -g none -i shares.data >out 2>/dev/null; then
	grep -q 'task-clock' out && grep -q 'half' out
	check "perf reads the recording"
else
	skip "perf reads the recording" "there is no perf"
fi

# A handler leaves the program's mmap(), and the object's code in it, by siglongjmp(3), 200 times.
cat >jumps.c <<'C'
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static sigjmp_buf place;
static void jump(int number)
{
	siglongjmp(place, number);
}
int main(void)
{
	volatile int jumps = 0;
	struct sigaction action = { .sa_handler = jump };
	sigaction(SIGALRM, &action, NULL);
	sigsetjmp(place, 1);
	if (jumps++ < 200) {
		struct itimerval soon = { .it_value = { 0, 100 + jumps * 7 % 300 } };
		setitimer(ITIMER_REAL, &soon, NULL);
		for (;;)
			munmap(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
	}
	clock_t begin = clock();
	while (clock() - begin < CLOCKS_PER_SEC / 2)
		;
	return 0;
}
C
${CC:-cc} -O1 -D_GNU_SOURCE -o jumps jumps.c && run 0 inside record -o jumps.data ./jumps && ! says 'the samples cover'
check "a thread is sampled on after its handlers have left system calls by siglongjmp"

# --- the command's environment -------------------------------------------------------------------------------------
variables() { grep -v '^_=' "$1" | sort; }
env >plain
run 0 inside stat -o counts env && diff <(variables plain) <(variables out) >>err
check "the program's environment is the caller's"
LD_PRELOAD=/nowhere/lib.so env 2>/dev/null >plain
LD_PRELOAD=/nowhere/lib.so run 0 inside stat -o counts env && diff <(variables plain) <(variables out) >>err
check "… also if the caller preloads something"
run 143 inside stat -e task-clock sh -c 'kill -TERM $$' && says '(process)'
check "a command that a signal ends has its exit status and counts"
run 127 inside stat /nowhere/program
check "a missing command is told of as always"

done_testing

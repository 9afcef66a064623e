#!/bin/bash
# Dumps of JITs that are gone when the recording ends name their code all the same, and a forked
# child's code is named by its parent's dump or map, or by its own.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export HOME=$scratch

[ "$(uname -m)" = x86_64 ] || skip_all "its code is x86-64's"
have cc || skip_all "there is no C compiler"
cat >maker.c <<'C'
/* A JIT: each word is a step.
 *   dump FOLDER, map: begins a dump, or a perf map        load NAME SLOT: makes a function
 *   run SLOT: runs it for 0.2 s of CPU time               fork, end: the child takes the steps between
 *   remove: removes the dump                              protect: mprotect to execute only, and back */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
enum { SLOT = 4096, SLOTS = 8 };
static const unsigned char LOOP[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3 };
static char *code, path[256];
static int dump = -1;
static FILE *map;
static uint64_t now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static void put(const void *bytes, size_t size) { if (write(dump, bytes, size) != (ssize_t)size) abort(); }
static void begin(const char *folder)
{
	struct { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; } head = {
		0x4A695444, 1, sizeof(head), EM_X86_64, 0, getpid(), now(CLOCK_MONOTONIC), 0 };
	snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, getpid());
	dump = open(path, O_CREAT | O_TRUNC | O_RDWR, 0666);
	put(&head, sizeof(head));
	if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0) == MAP_FAILED)
		abort();
}
static void load(const char *name, char *at)
{
	static uint64_t index;
	struct { uint32_t id, size; uint64_t time; uint32_t pid, tid; uint64_t address, again, code, index; } record = {
		0, sizeof(record) + strlen(name) + 1 + sizeof(LOOP), now(CLOCK_MONOTONIC), getpid(), getpid(),
		(uintptr_t)at, (uintptr_t)at, sizeof(LOOP), ++index };
	memcpy(at, LOOP, sizeof(LOOP));
	if (dump >= 0) {
		put(&record, sizeof(record));
		put(name, strlen(name) + 1);
		put(LOOP, sizeof(LOOP));
	}
	if (map) {
		fprintf(map, "%lx %zx %s\n", (unsigned long)at, sizeof(LOOP), name);
		fflush(map);
	}
}
static void run(char *at) { for (uint64_t end = now(CLOCK_PROCESS_CPUTIME_ID) + 200000000; now(CLOCK_PROCESS_CPUTIME_ID) < end;) ((void (*)(long))(void *)at)(200000); }
int main(int count, char **words)
{
	code = mmap(0, SLOTS * SLOT, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return 77;
	for (int i = 1; i < count; i++) {
		if (!strcmp(words[i], "dump")) {
			begin(words[++i]);
		} else if (!strcmp(words[i], "map")) {
			char name[64];
			snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
			map = fopen(name, "w");
		} else if (!strcmp(words[i], "load")) {
			load(words[i + 1], code + atoi(words[i + 2]) * SLOT);
			i += 2;
		} else if (!strcmp(words[i], "run")) {
			run(code + atoi(words[++i]) * SLOT);
		} else if (!strcmp(words[i], "protect")) {
			mprotect(code, SLOT, PROT_READ | PROT_EXEC);
			mprotect(code, SLOTS * SLOT, PROT_READ | PROT_WRITE | PROT_EXEC);
		} else if (!strcmp(words[i], "remove")) {
			unlink(path);
		} else if (!strcmp(words[i], "fork")) {
			if (fork())
				for (int depth = 0; (depth += !strcmp(words[i], "fork") - !strcmp(words[i], "end"));)
					i++;
		} else if (!strcmp(words[i], "end")) {
			break;
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
C
cc -O1 maker.c -o maker || skip_all "cc can't build the program"
./maker; [ $? != 77 ] || skip_all "memory can't be written and executed here"
trap 'cat maps 2>/dev/null | xargs -r rm -f; rm -rf "$scratch"' EXIT

record() { timeout 60 "$TALLY" record -q -e cpu-clock -F 500 -g -o "$@" >out 2>&1 </dev/null; }
# Records the steps, and reports the shares of functions.
steps() {
	record a.data -- ./maker "$@"
	"$TALLY" script -F dso,ip,sym -i a.data 2>/dev/null | grep -oE '/tmp/perf-[0-9]+\.map' | sort -u >>maps
	timeout 60 "$TALLY" report --stdio --percent-limit 1 -i a.data >out 2>&1
}
# The functions of JIT code, by their share: NAME SHARE…
shares() { awk '$3 ~ /^(jit\.dump|perf\.map|\[JIT\])$/ { printf "%s %d\n", $4, $2 + 0.5 } ' out | sort; }
# Whether these functions have about equal shares, and there are no other ones.
have_equal() { shares | awk -v names="$*" '
	BEGIN { n = split(names, name, " "); for (i in name) wanted[name[i]] = 1 }
	{ if (!($1 in wanted) || $2 < 100 / n * 0.7 || $2 > 100 / n * 1.3) bad = 1; else found++ }
	END { exit bad || found != n }'; }

steps dump . load made 0 run 0 || skip_all "tally can't record here: $(head -c 100 out | tr '\n#' '  ')"
check "code is named by its dump" have_equal made
steps dump . load made 0 run 0 remove
check "a dump that its process removes names its code" have_equal made
check "... without a warning" eval '! grep -q "warning: the dump" out'
contained() { unshare -m sh -c 'mount -t tmpfs none m && exec "$@"' contained "$@"; }
mkdir m
if contained true 2>/dev/null; then
	record a.data -- sh -c 'run() { unshare -m sh -c "mount -t tmpfs none m && exec ./maker dump $PWD/m load $1 0 run 0"; }; run in_one & run in_two & wait'
	timeout 60 "$TALLY" report --stdio --percent-limit 1 -i a.data --comm maker >out 2>&1
	check "dumps of containers that have ended name their code" have_equal in_one in_two
	cat >same.sh <<'SH'
# Two containers in which a process has the same number and the same path, on file systems of their own.
for n in in_one in_two; do
	more= # moves the second one's function within its dump
	[ $n = in_one ] || more='load another 3 load third 4'
	unshare -m -p -f sh -c 'mount -t tmpfs none m && exec ./maker dump "$PWD/m" '"$more"' load '$n' 0 run 0' &
done
wait
SH
	record a.data -- sh same.sh
	timeout 60 "$TALLY" report --stdio --percent-limit 1 -i a.data --comm maker >out 2>&1
	check "... also if they have the same path and inode number" have_equal in_one in_two
else
	skip "dumps of containers that have ended name their code" "no namespaces for this user"
	skip "... also if they have the same path and inode number" "no namespaces for this user"
fi

steps dump . load parents 0 fork run 0 end
check "a child's code is named by its parent's dump" have_equal parents
steps dump . load parents 0 fork fork run 0 end end
check "... and a grandchild's" have_equal parents
steps dump . load parents 0 fork run 0 end load again 0 run 0
check "what the parent makes later is not the child's" have_equal parents again
steps dump . load parents 0 fork dump . load childs 1 run 0 run 1 end
check "a child has its parent's dump and its own" have_equal parents childs
steps dump . load parents 0 fork dump . load childs 0 run 0 end
check "... and its own code replaces the parent's" have_equal childs
steps map load parents 0 fork run 0 end
check "a child's code is named by its parent's perf map" have_equal parents
steps map load parents 0 fork map load childs 1 run 0 run 1 end
check "a child has its parent's map and its own" have_equal parents childs
steps map load parents 0 fork map load childs 0 run 0 end run 0
check "... in which it renames inherited code, for itself alone" have_equal childs parents
steps map load parents 0 fork protect run 0 end
check "inherited code that the child protects keeps its name" have_equal parents
done_testing

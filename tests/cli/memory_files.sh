#!/bin/bash
# Code of files that are on no disk: programs and libraries in memfds, and code that a program copied
# to other memory at its addresses, have their names, and the stacks through them are whole.  TAP;
# $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export HOME=$scratch

have cc || skip_all "there is no C compiler"
cat >spin.c <<'C'
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
__attribute__((noinline)) void LEAF(long n) { for (long i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void work(double s) { for (double end = now() + s; now() < end;) LEAF(100000); __asm__ volatile(""); }
#ifdef PROGRAM
int main(int count, char **words) { work(count > 1 ? atof(words[1]) : 0.3); return 0; }
#endif
C
cat >memfd.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
extern char **environ;
static int copy(const char *file)
{
	char bytes[65536];
	int from = open(file, O_RDONLY), to = memfd_create("code", 0);
	for (ssize_t n; (n = read(from, bytes, sizeof(bytes))) > 0;)
		if (write(to, bytes, n) != n)
			exit(1);
	close(from);
	return to;
}
int main(int count, char **words) /* run PROGRAM SECONDS, or load LIBRARY… */
{
	char path[64];
	if (!strcmp(words[1], "run")) {
		sprintf(path, "/proc/self/fd/%d", copy(words[2]));
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		char *program[] = { "program", words[3], NULL };
		fexecve(fd, program, environ);
		return 1;
	}
	for (int i = 2; i < count; i++) { /* each keeps its descriptor: the loader knows it by this path */
		sprintf(path, "/proc/self/fd/%d", copy(words[i]));
		void *library = dlopen(path, RTLD_NOW);
		if (!library)
			return puts(dlerror()), 1;
		((void (*)(double))dlsym(library, "work"))(0.25);
	}
	return 0;
}
C
library() { cc -O2 -g -fPIC -shared "-DLEAF=$1" "${@:2}" spin.c -o "$1.so"; }
cc -O2 -g -DPROGRAM -DLEAF=in_program spin.c -o spin && cc -O2 memfd.c -o memfd -ldl &&
	library in_one && library in_two && library in_three || skip_all "cc can't build the programs"
./memfd run ./spin 0 || skip_all "no program can be run from a memory file here"

record() { timeout 60 "$TALLY" record -q -e cpu-clock -F 500 -g -o "$@" >out 2>&1 </dev/null; }
# Reports OBJECT and FUNCTION with their SELF.
report() { timeout 60 "$TALLY" report --stdio -i "$1" --percent-limit 0 >out 2>&1; }
# FILE FUNCTION: its share in itself, in whole per cent.
self() { "$TALLY" report -j -i "$1" 2>/dev/null |
	python3 -c 'import json,sys; print(sum(round(e["self"]["percent"]) for e in json.load(sys.stdin)["entries"] if e.get("function") == sys.argv[1]))' "$2"; }

record program.data -- ./memfd run ./spin 0.4 || skip_all "tally can't record here: $(head -c 100 out | tr '\n#' '  ')"
report program.data
check "a program in a memory file has names after it has ended" grep -Eq 'memfd:code[^ ]* .*in_program' out
check "... and nothing is missing" eval '! grep -Eq "warning|hint|truncated" out'
timeout 60 "$TALLY" fold -i program.data >out 2>err
check "... and its stacks are whole" grep -Eq '(^|;)_start;.*;main;work;in_program ' out

record library.data -- ./memfd load ./in_one.so
timeout 60 "$TALLY" fold -i library.data >out 2>err
check "a library in a memory file has names and callers" grep -Eq '(^|;)_start;.*;main;work;in_one ' out

# Several memory files of one name, without build-ids: each has its own names.
for name in in_one in_two in_three; do library $name -Wl,--build-id=none; done
record several.data -- ./memfd load ./in_one.so ./in_two.so ./in_three.so
timeout 60 "$TALLY" fold -i several.data >out 2>err
check "memory files of one name are told apart" \
	test "$(grep -Eo ';main;work;in_(one|two|three) ' out | sort -u | wc -l)" = 3

# Code that is copied to memory without a file, at the same addresses, as for large pages.
cat >copy.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
/* Copies the executable mapping of a file whose name ends so: in place, by mremap(2), to shared
 * memory, or to a memfd. */
void copy_code(const char *end_of_name, const char *how)
{
	char line[512], access[8], path[256];
	unsigned long start, end;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		*path = 0;
		sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &start, &end, access, path);
		size_t length = strlen(path), wanted = strlen(end_of_name);
		if (access[2] == 'x' && length > wanted && !strcmp(path + length - wanted, end_of_name))
			break;
		start = 0;
	}
	size_t size = end - start;
	char *at = (char *)start;
	int kind = MAP_ANONYMOUS | (strcmp(how, "shared") ? MAP_PRIVATE : MAP_SHARED), fd = -1;
	if (!start)
		abort();
	char *copy = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(copy, at, size);
	if (!strcmp(how, "mremap")) {
		mprotect(copy, size, PROT_READ | PROT_EXEC);
		if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
			abort();
		mprotect(at, size, PROT_READ | PROT_WRITE | PROT_EXEC);
		return;
	}
	if (!strcmp(how, "memfd")) {
		fd = memfd_create("large_pages", 0);
		kind = MAP_PRIVATE;
		if (write(fd, copy, size) != (ssize_t)size)
			abort();
	}
	if (mmap(at, size, PROT_READ | PROT_WRITE | PROT_EXEC, kind | MAP_FIXED, fd, 0) != at)
		abort();
	memcpy(at, copy, size);
	mprotect(at, size, PROT_READ | PROT_EXEC);
}
C
cat >copied.c <<'C'
#include <stdlib.h>
#include <unistd.h>
void copy_code(const char *, const char *);
void work(double);
int main(int count, char **words) /* FILE HOW */
{
	copy_code(words[1], words[2]);
	if (count > 3) { /* says that the code is copied, and waits for the recorder */
		write(1, "\n", 1);
		sleep(1);
	}
	work(0.4);
	return 0;
}
C
library in_library && mv in_library.so libwork.so
cc -O2 -g -shared -fPIC copy.c -o libcopy.so &&
	cc -O2 -g -DLEAF=in_program copied.c spin.c -o inside -L. -lcopy -Wl,-rpath,"$PWD" &&
	cc -O2 -g copied.c -o outside -L. -lcopy -lwork -Wl,-rpath,"$PWD" && ./inside /inside anonymous
if [ $? = 0 ]; then
	for how in anonymous mremap shared memfd; do
		record copied.data -- ./inside /inside $how
		timeout 60 "$TALLY" fold -i copied.data >out 2>err
		check "a program that copied its code keeps its names and stacks ($how)" grep -Eq '(^|;)_start;.*;main;work;in_program ' out
		"$TALLY" report --stdio -i copied.data --percent-limit 5 >out 2>&1
		check "... and nothing is unnamed" eval '! grep -Eq "hint|warning|JIT" out'
	done
	record library.data -- ./outside /libwork.so anonymous
	timeout 60 "$TALLY" fold -i library.data >out 2>err
	check "a library whose code was copied keeps its names and stacks" grep -Eq '(^|;)_start;.*;main;work;in_library ' out
	for file in inside libwork.so; do
		program=./inside; [ $file = inside ] || program=./outside
		mkfifo ready.$file
		$program /$file anonymous wait >ready.$file & pid=$!
		read -r _ <ready.$file
		record attached.data -p $pid
		timeout 60 "$TALLY" fold -i attached.data >out 2>err
		wait $pid
		check "... also if it was copied before the recording ($file)" grep -Eq '(^|;)_start;.*;main;work;in_(program|library) ' out
	done
else
	skip "code that was copied keeps its names" "this machine doesn't let programs copy their code"
fi
done_testing

/* new_code LIBRARY WAY…: makes code in each WAY and spends 100 ms of CPU in it.  LIBRARY has the function
 * spin_in_library(), and a constructor that spends 100 ms.  "other:FILE" sets LIBRARY for later ways.
 *
 * Prints for each way, in which address range it was: "WAY FROM TO", in hexadecimal digits. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, CODE = 512, MANY = 3000 };

/* Copied to other places, so it refers to nothing. */
__attribute__((noinline, aligned(64))) static void spin(volatile unsigned long count)
{
	while (count--)
		;
}

static double used_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void use(const char *way, char *code)
{
	void (*function)(unsigned long) = (void (*)(unsigned long))(uintptr_t)code;
	printf("%s %lx %lx\n", way, (unsigned long)code, (unsigned long)code + CODE);
	fflush(stdout);
	for (double until = used_s() + 0.1; used_s() < until;)
		function(1000000);
}

static char *map(size_t size, int protection, int flags, int fd)
{
	char *memory = mmap(NULL, size, protection, flags, fd, 0);
	if (memory == MAP_FAILED) {
		perror("new_code: mmap");
		exit(1);
	}
	return memory;
}

static char *fill(char *memory)
{
	memcpy(memory, (const void *)(uintptr_t)spin, CODE);
	__builtin___clear_cache(memory, memory + CODE);
	return memory;
}

int main(int argc, char **argv)
{
	const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
	for (int i = 2; i < argc; i++) {
		const char *way = argv[i];
		if (!strcmp(way, "library")) {
			void *library = dlopen(argv[1], RTLD_NOW);
			void (*function)(void) =
				(void (*)(void))(uintptr_t)dlsym(library, "spin_in_library");
			if (!function)
				return 1;
			function();
			dlclose(library);
		} else if (!strncmp(way, "other:", 6)) {
			argv[1] = argv[i] + 6;
		} else if (!strcmp(way, "again")) {
			/* loaded, unloaded, and loaded again */
			for (int k = 0; k < 3; k++) {
				void *library = dlopen(argv[1], RTLD_NOW);
				dlclose(library);
			}
		} else if (!strcmp(way, "mmap")) {
			use(way, fill(map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, anonymous, -1)));
		} else if (!strcmp(way, "mprotect")) {
			char *memory = fill(map(64 * PAGE, PROT_READ | PROT_WRITE, anonymous, -1) +
					    32 * PAGE);
			mprotect(memory, PAGE, PROT_READ | PROT_EXEC);
			use(way, memory);
		} else if (!strcmp(way, "mremap")) {
			char *memory = fill(map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, anonymous, -1));
			char *room = map(4 * PAGE, PROT_NONE, anonymous, -1);
			use(way, mremap(memory, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room));
		} else if (!strcmp(way, "file")) {
			int fd = memfd_create("code of a file", 0);
			if (ftruncate(fd, PAGE))
				return 1;
			fill(map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd));
			use(way, map(PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd));
		} else if (!strcmp(way, "many")) {
			/* with gaps, so that the kernel doesn't join them */
			char *memory = NULL, *all = map((size_t)MANY * 2 * PAGE, PROT_NONE, anonymous, -1);
			double from = used_s();
			for (int k = 0; k < MANY; k++) {
				memory = all + (size_t)k * 2 * PAGE;
				mprotect(memory, PAGE, PROT_READ | PROT_WRITE);
				fill(memory);
				mprotect(memory, PAGE, PROT_READ | PROT_EXEC);
			}
			fprintf(stderr, "many: %.3f s\n", used_s() - from);
			use(way, memory);
		} else if (!strcmp(way, "fork")) {
			char *memory = fill(map(PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, anonymous, -1));
			if (fork()) {
				wait(NULL);
				continue;
			}
			use(way, memory);
			return 0;
		} else {
			return 2;
		}
	}
	return 0;
}

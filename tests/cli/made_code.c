/* Makes code that counts down, names it in its perf map, and runs it.  Then it replaces the map by
 * one of other code, runs that, and removes the map.  "made_code ROUNDS keep" leaves the map.
 * "made_code ROUNDS stop" waits for a SIGCONT before it runs anything.  Exits with 77 if that is
 * impossible. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
/* 1: dec %rdi; jnz 1b; ret */
static const uint8_t LOOP[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#elif defined(__aarch64__)
/* 1: subs x0, x0, #1; b.ne 1b; ret */
static const uint8_t LOOP[] = { 0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff,
				0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6 };
#else
static const uint8_t LOOP[] = { 0 };
#endif
static void *make(const char *name, const char *map, const char *mode)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *file = fopen(map, mode);
	if (code == MAP_FAILED || !file || sizeof(LOOP) < 2)
		return NULL;
	memcpy(code, LOOP, sizeof(LOOP));
	__builtin___clear_cache((char *)code, (char *)code + sizeof(LOOP));
	fprintf(file, "%llx %zx %s\n", (unsigned long long)(uintptr_t)code, sizeof(LOOP), name);
	fclose(file);
	return code;
}
int main(int argc, char **argv)
{
	uint64_t rounds = 300000000 * (argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
	char map[64], next[64];
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
	snprintf(next, sizeof(next), "/tmp/perf-%d.map.next", (int)getpid());
	void (*code)(uint64_t) = (void (*)(uint64_t))make("made_first", map, "w");
	if (!code)
		return 77;
	if (argc > 2 && !strcmp(argv[2], "stop"))
		raise(SIGSTOP);
	code(rounds);
	void (*more)(uint64_t) = (void (*)(uint64_t))make("made_later", next, "w");
	if (!more || rename(next, map) < 0) /* this map no longer names the first code */
		return 1;
	more(rounds);
	return argc > 2 && !strcmp(argv[2], "keep") ? 0 : unlink(map);
}

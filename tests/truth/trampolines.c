/* Makes code at run time exactly like CPython's perf trampolines (Python/asm_trampoline.S).  Each
 * function of the interpreted program has a copy of a few instructions, which calls the
 * interpreter, and a line in /tmp/perf-PID.map.  The argument chooses the copies' unwinding
 * information:
 *
 *   plain    none; a copy moves the stack pointer by 8 (CPython 3.12)
 *   frames   a frame pointer (later versions, built with frame pointers)
 *   dump     like plain, with a jitdump (/tmp/jit-PID.dump, -X perf_jit) that has an .eh_frame for
 *            each copy */
#include "truth.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

enum { HALF, THIRD, FIFTH, PARTS };
enum { ROUNDS = 12, CODE_BYTES = 32, ARENA_BYTES = 65536 };

static struct truth_part parts[PARTS] = { { "half", 0 }, { "third", 0 }, { "fifth", 0 } };

struct state;
typedef uint64_t evaluator(struct state *state, const int *function, int throwing);
typedef uint64_t trampoline(struct state *state, const int *function, int throwing,
			    evaluator *evaluate);

struct state {
	trampoline *copies[PARTS];
	trampoline *drive;
	uint64_t value;
};

/* sub $8,%rsp; call *%rcx; add $8,%rsp; ret */
static const unsigned char plain[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08,
				       0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3 };
/* push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret */
static const unsigned char frames[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48,
					0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3 };

TRUTH_FUNCTION uint64_t half(uint64_t value)
{
	return truth_work(value) + 1;
}

TRUTH_FUNCTION uint64_t third(uint64_t value)
{
	return truth_work(value) + 2;
}

TRUTH_FUNCTION uint64_t fifth(uint64_t value)
{
	return truth_work(value) + 3;
}

/* The interpreter.  Like a real one, its frame has saved registers and some memory. */
TRUTH_FUNCTION uint64_t evaluate(struct state *state, const int *function, int throwing)
{
	volatile uint64_t operands[12];
	uint64_t value = state->value;
	operands[value % 12] = (uint64_t)throwing;
	if (*function == PARTS) {
		for (int called = HALF; called < PARTS; called++)
			state->value += state->copies[called](state, &called, throwing, evaluate);
		return state->value;
	}
	if (*function == HALF)
		TRUTH_SPEND(&parts[HALF], 75, value = half(value));
	else if (*function == THIRD)
		TRUTH_SPEND(&parts[THIRD], 45, value = third(value));
	else
		TRUTH_SPEND(&parts[FIFTH], 30, value = fifth(value));
	return value + operands[value % 12];
}

/* ---- jitdump (tools/perf/Documentation/jitdump-specification.txt) ---- */

enum { JIT_LOAD = 0, JIT_UNWINDING_INFO = 4, X86_64 = 62, RECORD_HEADER_BYTES = 16 };

static void put(FILE *file, uint64_t value, size_t size)
{
	fwrite(&value, size, 1, file);
}

static void put_head(FILE *dump, uint32_t kind, size_t body_bytes)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	put(dump, kind, 4);
	put(dump, RECORD_HEADER_BYTES + body_bytes, 4);
	put(dump, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, 8);
}

/* Maps the file executable for a moment, which tells a recorder about it. */
static FILE *open_dump(void)
{
	char path[64];
	FILE *dump;
	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", (int)getpid());
	dump = fopen(path, "w+");
	if (!dump ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
		return NULL;
	put(dump, 0x4a695444, 4); /* magic */
	put(dump, 1, 4);
	put(dump, 40, 4); /* bytes of this header */
	put(dump, X86_64, 4);
	put(dump, 0, 4);
	put(dump, (uint64_t)getpid(), 4);
	put(dump, 0, 8); /* time */
	put(dump, 0, 8); /* flags */
	return dump;
}

/* An .eh_frame of one function, whose code is right before it, padded to 16 bytes. */
// clang-format off
static const unsigned char eh_frame[] = {
	/* CIE: "zR", the return address is 16, the CFA is rsp+8 */
	20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	/* FDE: the code's address, set for each copy, and size */
	24, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, sizeof(plain), 0, 0, 0, 0,
	0x48, 0x0e, 16, /* 8 bytes further, after the sub: rsp+16 */
	0x46, 0x0e, 8,  /* 6 bytes further, after the add: rsp+8 */
	0, 0, 0, 0, 0,
};
// clang-format on
enum { FRAME_BYTES = sizeof(eh_frame), ADDRESS_AT = 32, CODE_ROOM = 16 };

static void dump_copy(FILE *dump, const void *made, const unsigned char *code, size_t size,
		      const char *name, uint64_t number)
{
	char text[64];
	size_t name_bytes = (size_t)snprintf(text, sizeof(text), "py::%s:/tmp/script.py", name) + 1;
	unsigned char frame[FRAME_BYTES];
	int32_t to_code = -(CODE_ROOM + ADDRESS_AT); /* relative to that field */
	memcpy(frame, eh_frame, sizeof(frame));
	memcpy(frame + ADDRESS_AT, &to_code, sizeof(to_code));
	put_head(dump, JIT_UNWINDING_INFO, 24 + sizeof(frame));
	put(dump, sizeof(frame), 8);
	put(dump, 0, 8); /* bytes of an .eh_frame_hdr */
	put(dump, sizeof(frame), 8);
	fwrite(frame, sizeof(frame), 1, dump);
	put_head(dump, JIT_LOAD, 40 + name_bytes + size);
	put(dump, (uint64_t)getpid(), 4);
	put(dump, (uint64_t)getpid(), 4);
	put(dump, (uint64_t)(uintptr_t)made, 8);
	put(dump, (uint64_t)(uintptr_t)made, 8);
	put(dump, size, 8);
	put(dump, number, 8);
	fwrite(text, name_bytes, 1, dump);
	fwrite(code, size, 1, dump);
}

/* ---- the copies ---- */

static trampoline *copy(unsigned char **at, const unsigned char *code, size_t size,
			const char *name, FILE *map, FILE *dump)
{
	void *made = *at;
	memcpy(made, code, size);
	if (dump)
		dump_copy(dump, made, code, size, name, (uint64_t)(uintptr_t)made / CODE_BYTES);
	else
		fprintf(map, "%lx %zx py::%s:/tmp/script.py\n", (unsigned long)made, size, name);
	*at += CODE_BYTES;
	return (trampoline *)made;
}

int main(int argc, char **argv)
{
	struct state state = { .value = 1 };
	char path[64];
	int whole = PARTS;
	int with_frames = argc > 1 && !strcmp(argv[1], "frames");
	const unsigned char *code = with_frames ? frames : plain;
	size_t size = with_frames ? sizeof(frames) : sizeof(plain);
	unsigned char *arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *at = arena;
	int with_dump = argc > 1 && !strcmp(argv[1], "dump");
	FILE *map, *dump = with_dump ? open_dump() : NULL;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(with_dump ? "/dev/null" : path, "w");
	if (arena == MAP_FAILED || !map || (with_dump && !dump))
		return 1;
	for (int part = HALF; part < PARTS; part++)
		state.copies[part] = copy(&at, code, size, parts[part].name, map, dump);
	state.drive = copy(&at, code, size, "drive", map, dump);
	fclose(map);
	if (dump)
		fflush(dump);
	if (mprotect(arena, ARENA_BYTES, PROT_READ | PROT_EXEC))
		return 1;
	for (int i = 0; i < ROUNDS; i++)
		state.drive(&state, &whole, 0, evaluate);
	truth_print(parts, PARTS);
	return state.value == 42; /* keeps the compiler from removing the work */
}

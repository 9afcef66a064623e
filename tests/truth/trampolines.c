/* Code that a program makes while it runs, exactly as CPython's perf trampolines do (Python/asm_trampoline.S): one copy of a few
 * instructions for each function of the interpreted program, which calls the interpreter, and a line of /tmp/perf-PID.map for
 * each.  The code has no unwinding information but for what its kind says:
 *   plain    moves the stack pointer by 8 (CPython 3.12)
 *   frames   keeps a frame pointer (later versions, built with frame pointers)
 */
#include <string.h>
#include <sys/mman.h>
#include "truth.h"

enum { HALF, THIRD, FIFTH, PARTS };
enum { ROUNDS = 12, CODE_BYTES = 32, ARENA_BYTES = 65536 };

static struct truth_part parts[PARTS] = { { "half", 0 }, { "third", 0 }, { "fifth", 0 } };

struct state;
typedef uint64_t evaluator(struct state *state, const int *function, int throwing);
typedef uint64_t trampoline(struct state *state, const int *function, int throwing, evaluator *evaluate);

struct state {
	trampoline *copies[PARTS];
	trampoline *drive;
	uint64_t value;
};

/* sub $8,%rsp; call *%rcx; add $8,%rsp; ret */
static const unsigned char plain[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3 };
/* push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret */
static const unsigned char frames[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3 };

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

/* The interpreter: its frame has what an interpreter's has, registers that it keeps and some memory. */
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

static trampoline *copy(unsigned char **at, const unsigned char *code, size_t size, const char *name, FILE *map)
{
	void *made = *at;
	memcpy(made, code, size);
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
	unsigned char *arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *at = arena;
	FILE *map;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (arena == MAP_FAILED || !map)
		return 1;
	for (int part = HALF; part < PARTS; part++)
		state.copies[part] = copy(&at, code, size, parts[part].name, map);
	state.drive = copy(&at, code, size, "drive", map);
	fclose(map);
	if (mprotect(arena, ARENA_BYTES, PROT_READ | PROT_EXEC))
		return 1;
	for (int i = 0; i < ROUNDS; i++)
		state.drive(&state, &whole, 0, evaluate);
	truth_print(parts, PARTS);
	return state.value == 42; /* keeps the work */
}

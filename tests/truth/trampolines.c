/* Makes code at run time exactly like CPython's perf trampolines (Python/asm_trampoline.S).  Each
 * function of the interpreted program has a copy of a few instructions, which calls the
 * interpreter, and a line in /tmp/perf-PID.map.  The argument chooses the copies' unwinding
 * information:
 *
 *   plain    none; a copy moves the stack pointer by 8 (CPython 3.12)
 *   frames   a frame pointer (later versions, built with frame pointers)
 *   dump     a jitdump (/tmp/jit-PID.dump, -X perf_jit) has an .eh_frame for each copy.  For two
 *            copies it alone is right: one aligns the stack by an amount that no instruction
 *            tells, and one jumps by a ret.
 */
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
/* push %rbx; mov %rsp,%rbx; and $-64,%rsp; call *%rcx; mov %rbx,%rsp; pop %rbx; ret */
static const unsigned char aligning[] = { 0x53, 0x48, 0x89, 0xe3, 0x48, 0x83, 0xe4, 0xc0,
					  0xff, 0xd1, 0x48, 0x89, 0xdc, 0x5b, 0xc3 };
/* sub $24,%rsp; lea 1f(%rip),%rax; mov %rax,(%rsp); call *%rcx; ret; 1: add $16,%rsp; ret
 * The first ret is a jump: no return address lies at rsp. */
static const unsigned char misleading[] = { 0x48, 0x83, 0xec, 0x18, 0x48, 0x8d, 0x05, 0x07,
					    0x00, 0x00, 0x00, 0x48, 0x89, 0x04, 0x24, 0xff,
					    0xd1, 0xc3, 0x48, 0x83, 0xc4, 0x10, 0xc3 };

/* Their rules behind the CIE's, as DW_CFA_ instructions: advance_loc 0x40 + bytes, def_cfa_offset
 * 0x0e, def_cfa_register 0x0d, def_cfa 0x0c, offset 0x80 + register, restore 0xc0 + register.
 * Registers are 3 rbx, 7 rsp. */
static const unsigned char plain_rules[] = { 0x48, 0x0e, 16, 0x46, 0x0e, 8 };
static const unsigned char aligning_rules[] = { 0x41, 0x0e, 16, 0x83, 2,    0x43, 0x0d, 3,
						0x49, 0x0d, 7,  0x41, 0x0e, 8,    0xc3 };
static const unsigned char misleading_rules[] = { 0x44, 0x0e, 32, 0x4e, 0x0e, 24, 0x44, 0x0e, 8 };

struct code {
	const unsigned char *bytes;
	size_t size;
	const unsigned char *rules;
	size_t rules_size;
};

static const struct code PLAIN = { plain, sizeof(plain), plain_rules, sizeof(plain_rules) },
			 FRAMES = { frames, sizeof(frames), NULL, 0 },
			 ALIGNING = { aligning, sizeof(aligning), aligning_rules,
				      sizeof(aligning_rules) },
			 MISLEADING = { misleading, sizeof(misleading), misleading_rules,
					sizeof(misleading_rules) };

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

// clang-format off
static const unsigned char cie[] = {
	/* "zR", the return address is 16, the CFA is rsp+8 */
	20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
};
// clang-format on
enum { CIE_BYTES = sizeof(cie), FDE_HEAD_BYTES = 17, FRAME_BYTES_MAX = 128 };

static size_t multiple_of_8(size_t size)
{
	return (size + 7) / 8 * 8;
}

/* An .eh_frame of one function, whose code lies before it, padded to a multiple of 8 bytes. */
static size_t make_frame(const struct code *code, unsigned char *frame)
{
	size_t size = multiple_of_8(CIE_BYTES + FDE_HEAD_BYTES + code->rules_size);
	const uint32_t address_at = CIE_BYTES + 8;
	const uint32_t head[] = { (uint32_t)size - CIE_BYTES - 4, CIE_BYTES + 4,
				  -((uint32_t)multiple_of_8(code->size) + address_at),
				  (uint32_t)code->size };
	memset(frame, 0, FRAME_BYTES_MAX);
	memcpy(frame, cie, CIE_BYTES);
	memcpy(frame + CIE_BYTES, head, sizeof(head));
	memcpy(frame + CIE_BYTES + FDE_HEAD_BYTES, code->rules, code->rules_size);
	return size;
}

static void dump_copy(FILE *dump, const void *made, const struct code *code, const char *name,
		      uint64_t number)
{
	char text[64];
	size_t name_bytes = (size_t)snprintf(text, sizeof(text), "py::%s:/tmp/script.py", name) + 1;
	unsigned char frame[FRAME_BYTES_MAX];
	size_t frame_bytes = make_frame(code, frame);
	put_head(dump, JIT_UNWINDING_INFO, 24 + frame_bytes);
	put(dump, frame_bytes, 8);
	put(dump, 0, 8); /* bytes of an .eh_frame_hdr */
	put(dump, frame_bytes, 8);
	fwrite(frame, frame_bytes, 1, dump);
	put_head(dump, JIT_LOAD, 40 + name_bytes + code->size);
	put(dump, (uint64_t)getpid(), 4);
	put(dump, (uint64_t)getpid(), 4);
	put(dump, (uint64_t)(uintptr_t)made, 8);
	put(dump, (uint64_t)(uintptr_t)made, 8);
	put(dump, code->size, 8);
	put(dump, number, 8);
	fwrite(text, name_bytes, 1, dump);
	fwrite(code->bytes, code->size, 1, dump);
}

/* ---- the copies ---- */

static trampoline *copy(unsigned char **at, const struct code *code, const char *name, FILE *map,
			FILE *dump)
{
	void *made = *at;
	memcpy(made, code->bytes, code->size);
	if (dump)
		dump_copy(dump, made, code, name, (uint64_t)(uintptr_t)made / CODE_BYTES);
	else
		fprintf(map, "%lx %zx py::%s:/tmp/script.py\n", (unsigned long)made, code->size,
			name);
	*at += CODE_BYTES;
	return (trampoline *)made;
}

int main(int argc, char **argv)
{
	struct state state = { .value = 1 };
	char path[64];
	int whole = PARTS;
	int with_frames = argc > 1 && !strcmp(argv[1], "frames");
	unsigned char *arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *at = arena;
	int with_dump = argc > 1 && !strcmp(argv[1], "dump");
	const struct code *code = with_frames ? &FRAMES : &PLAIN;
	const struct code *of_part[PARTS] = { code, code, code };
	FILE *map, *dump = with_dump ? open_dump() : NULL;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(with_dump ? "/dev/null" : path, "w");
	if (arena == MAP_FAILED || !map || (with_dump && !dump))
		return 1;
	if (with_dump) {
		of_part[HALF] = &ALIGNING;
		of_part[THIRD] = &MISLEADING;
	}
	for (int part = HALF; part < PARTS; part++)
		state.copies[part] = copy(&at, of_part[part], parts[part].name, map, dump);
	state.drive = copy(&at, code, "drive", map, dump);
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

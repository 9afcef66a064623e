#include "unwind/code_spot.h"

#include <stdbool.h>
#include <string.h>

struct pattern {
	uint8_t bytes[9];
	uint8_t size;
	enum tally_code_spot spot;
};

/* Each pattern is certain in any function, except `mov %rsp,%rbp`, which needs its push before
 * it. */
static const struct pattern PATTERNS[] = {
	/* mov $15,%rax; syscall: rt_sigreturn.  The trampolines of musl and of other languages'
	 * runtimes have no rules. */
	{ { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 }, 9, TALLY_CODE_SIGRETURN },
	/* jmp *x(%rip): an entry of the PLT, or a tail call.  The PLT of static programs has no
	 * rules. */
	{ { 0xff, 0x25 }, 2, TALLY_CODE_EDGE },
	{ { 0xf2, 0xff, 0x25 }, 3, TALLY_CODE_EDGE },
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25 }, 6, TALLY_CODE_EDGE }, /* behind endbr64 */
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25 }, 7, TALLY_CODE_EDGE },
	{ { 0xc3 }, 1, TALLY_CODE_EDGE },
	{ { 0xf3, 0xc3 }, 2, TALLY_CODE_EDGE },
	{ { 0xf2, 0xc3 }, 2, TALLY_CODE_EDGE },
	/* push %rbp; mov %rsp,%rbp, in both encodings */
	{ { 0x55, 0x48, 0x89, 0xe5 }, 4, TALLY_CODE_EDGE },
	{ { 0x55, 0x48, 0x8b, 0xec }, 4, TALLY_CODE_EDGE },
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5 }, 8, TALLY_CODE_EDGE },
	{ { 0x48, 0x89, 0xe5 }, 3, TALLY_CODE_PUSHED_RBP },
	{ { 0x48, 0x8b, 0xec }, 3, TALLY_CODE_PUSHED_RBP },
};

enum { PUSH_RBP = 0x55 };

enum tally_code_spot tally_code_recognise(const uint8_t *code, size_t size, uint8_t previous)
{
	for (size_t i = 0; i < sizeof(PATTERNS) / sizeof(*PATTERNS); i++) {
		const struct pattern *pattern = &PATTERNS[i];
		bool is_here = size >= pattern->size &&
			       memcmp(code, pattern->bytes, pattern->size) == 0;
		if (is_here && (pattern->spot != TALLY_CODE_PUSHED_RBP || previous == PUSH_RBP))
			return pattern->spot;
	}
	return TALLY_CODE_OTHER;
}

struct instruction {
	uint32_t mask, value;
};

/* Instructions at which x30 holds the return address and sp is the caller's: a function's first
 * instruction, its last, and those of PLT stubs (the linker writes no rules for stubs). */
static const struct instruction ARM64_EDGES[] = {
	{ 0xffffffff, 0xd65f03c0 }, /* ret */
	{ 0xfffffbff, 0xd65f0bff }, /* retaa, retab */
	{ 0xffc07fff, 0xa9807bfd }, /* stp x29,x30,[sp,#-n]! */
	{ 0xffffffbf, 0xd503233f }, /* paciasp, pacibsp */
	{ 0xffffff3f, 0xd503241f }, /* bti */
	{ 0x9f00001f, 0x90000010 }, /* adrp x16,… */
	{ 0xffc003ff, 0xf9400211 }, /* ldr x17,[x16,…] */
	{ 0xffc003ff, 0x91000210 }, /* add x16,x16,… */
	{ 0xffffffff, 0xd61f0220 }, /* br x17 */
};

enum tally_code_spot tally_code_recognise_arm64(const uint8_t *code, size_t size)
{
	/* mov x8,#139; svc #0 */
	static const uint8_t SIGRETURN[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };
	uint32_t instruction;
	if (size >= sizeof(SIGRETURN) && memcmp(code, SIGRETURN, sizeof(SIGRETURN)) == 0)
		return TALLY_CODE_SIGRETURN;
	if (size < sizeof(instruction))
		return TALLY_CODE_OTHER;
	memcpy(&instruction, code, sizeof(instruction));
	for (size_t i = 0; i < sizeof(ARM64_EDGES) / sizeof(*ARM64_EDGES); i++)
		if ((instruction & ARM64_EDGES[i].mask) == ARM64_EDGES[i].value)
			return TALLY_CODE_EDGE;
	return TALLY_CODE_OTHER;
}

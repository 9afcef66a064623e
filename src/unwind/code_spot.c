#include "unwind/code_spot.h"

#include <stdbool.h>
#include <string.h>

struct pattern {
	uint8_t bytes[9];
	uint8_t size;
	enum tally_code_spot spot;
};

/* All certain, whatever function they are found in, but for `mov %rsp,%rbp`, which needs its push before it. */
static const struct pattern PATTERNS[] = {
	/* mov $15,%rax; syscall: rt_sigreturn.  musl's has no rules, nor have those of other languages' runtimes. */
	{ { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 }, 9, TALLY_CODE_SIGRETURN },
	/* jmp *x(%rip): PLT, or a call in tail position.  Static programs' PLT has no rules. */
	{ { 0xff, 0x25 }, 2, TALLY_CODE_EDGE },
	{ { 0xf2, 0xff, 0x25 }, 3, TALLY_CODE_EDGE },
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25 }, 6, TALLY_CODE_EDGE }, /* behind endbr64 */
	{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25 }, 7, TALLY_CODE_EDGE },
	{ { 0xc3 }, 1, TALLY_CODE_EDGE },
	{ { 0xf3, 0xc3 }, 2, TALLY_CODE_EDGE },
	{ { 0xf2, 0xc3 }, 2, TALLY_CODE_EDGE },
	{ { 0x55, 0x48, 0x89, 0xe5 }, 4, TALLY_CODE_EDGE }, /* push %rbp; mov %rsp,%rbp, in both encodings */
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
		bool is_here = size >= pattern->size && memcmp(code, pattern->bytes, pattern->size) == 0;
		if (is_here && (pattern->spot != TALLY_CODE_PUSHED_RBP || previous == PUSH_RBP))
			return pattern->spot;
	}
	return TALLY_CODE_OTHER;
}

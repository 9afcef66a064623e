/* The code that the kernel made of BPF programs: what of it is there now.
 *
 * Whoever may do anything (CAP_SYS_ADMIN) is told of each program by bpf(2): its functions with
 * their lengths, its number and tag.  Others find in /proc/kallsyms, where they may see addresses,
 * where functions begin and what they are called; trampolines and dispatchers, which are no
 * programs, are nowhere else.
 */
#ifndef TALLY_MACHINE_BPF_CODES_H
#define TALLY_MACHINE_BPF_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_bpf_code {
	uint64_t start;
	uint32_t size;
	/* its number; 0: not known.  A program's functions stand one behind the other */
	uint32_t program;
	uint8_t tag[8];   /* the program's */
	char name[256];   /* "bpf_prog_0123456789abcdef_name", as in KSYMBOL records */
};

struct tally_bpf_codes {
	struct tally_bpf_code *items; /* to be freed with tally_vector_release() */
	size_t count, capacity;
};

/* Those that there are: 0; -EPERM and the like when nothing tells of them, -ENOMEM. */
int tally_bpf_codes_read(struct tally_bpf_codes *out);

/* Those that a text of kallsyms has, which is terminated; `programs`: these too, not what leads to
 * them alone.  As far as the next symbol, for a reasonable length at most.  0 or -ENOMEM. */
int tally_bpf_codes_parse(const char *kallsyms, bool programs, struct tally_bpf_codes *out);

#endif

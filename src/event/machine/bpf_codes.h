/* The machine code of BPF programs that is in the kernel now.
 *
 * With CAP_SYS_ADMIN, bpf(2) describes each program: its functions and their lengths, its id and
 * tag.  Without it, /proc/kallsyms gives the functions' names and start addresses, if the kernel
 * shows addresses to this user.  Trampolines and dispatchers, which are not programs, are only in
 * /proc/kallsyms. */
#ifndef TALLY_MACHINE_BPF_CODES_H
#define TALLY_MACHINE_BPF_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_bpf_code {
	uint64_t start;
	uint32_t size;
	/* the program's id; 0: unknown.  A program has one item for each of its functions; they
	 * are adjacent */
	uint32_t program;
	uint8_t tag[8];   /* the program's tag */
	char name[256];   /* "bpf_prog_0123456789abcdef_name", as in KSYMBOL records */
};

struct tally_bpf_codes {
	struct tally_bpf_code *items; /* the caller frees it with tally_vector_release() */
	size_t count, capacity;
};

/* Adds all code that is in the kernel now.  Returns 0, -ENOMEM, or another -errno (such as -EPERM)
 * if neither source can be read. */
int tally_bpf_codes_read(struct tally_bpf_codes *out);

/* Adds the trampolines and dispatchers in `kallsyms`, the NUL-terminated text of /proc/kallsyms.
 * `programs`: also adds the programs' functions.  The text has no sizes: an item ends where the
 * next symbol begins, or after a plausible maximum.  Returns 0 or -ENOMEM. */
int tally_bpf_codes_parse(const char *kallsyms, bool programs, struct tally_bpf_codes *out);

/* BTF, the types of BPF programs (Documentation/bpf/btf.rst): reads only the names of functions.
 * Pure: bytes in, names out.  The bytes are in this machine's byte order, and untrusted. */

/* Looks up the names of `count` types by their ids: NULL for those without one.  The names point
 * into the bytes. */
void tally_bpf_type_names(const void *types, size_t size, const uint32_t *ids, size_t count,
			  const char **names);

#endif

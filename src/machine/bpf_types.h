/* BTF, the types of BPF programs (Documentation/bpf/btf.rst): no more of it than what functions are
 * called.  Pure: bytes in, names out; the bytes are those of this machine, and untrusted. */
#ifndef TALLY_MACHINE_BPF_TYPES_H
#define TALLY_MACHINE_BPF_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* The names of `count` types by their ids, NULL for those that there are none of; they lie within
 * the bytes. */
void tally_bpf_type_names(const void *types, size_t size, const uint32_t *ids, size_t count,
			  const char **names);

#endif

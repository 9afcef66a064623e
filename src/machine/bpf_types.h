/* BTF, the types of BPF programs (Documentation/bpf/btf.rst): reads only the names of functions.
 * Pure: bytes in, names out.  The bytes are in this machine's byte order, and untrusted. */
#ifndef TALLY_MACHINE_BPF_TYPES_H
#define TALLY_MACHINE_BPF_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Looks up the names of `count` types by their ids: NULL for those without one.  The names point
 * into the bytes. */
void tally_bpf_type_names(const void *types, size_t size, const uint32_t *ids, size_t count,
			  const char **names);

#endif

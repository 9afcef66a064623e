/* Symbols that simpleperf stores in its recordings: section 128, FILE, of its record_file_format.h
 * (AOSP, system/extras).
 *
 *     for each file: u32 size of the rest | path, NUL | u32 type | u64 min_vaddr | u32 count
 *                    each symbol: u64 address, u32 length, name, NUL
 *                    of a dex file: u32 count, u64 offsets
 *                    of an ELF file, since 2018: u64 offset of min_vaddr in the file
 *
 * Pure: bytes in, tables out. */
#ifndef TALLY_SYMBOL_SIMPLEPERF_SYMBOLS_H
#define TALLY_SYMBOL_SIMPLEPERF_SYMBOLS_H

#include "symbol/symbol.h"

enum tally_simpleperf_kind {
	TALLY_SIMPLEPERF_KERNEL,
	TALLY_SIMPLEPERF_MODULE,
	TALLY_SIMPLEPERF_ELF,
	TALLY_SIMPLEPERF_DEX,
	TALLY_SIMPLEPERF_MAP, /* code of a JIT */
};

struct tally_simpleperf_file {
	const char *path;
	uint32_t kind;        /* an enum tally_simpleperf_kind, or a kind that is newer */
	uint64_t min_address; /* ELF: the lowest executable address, as linked */
	uint32_t symbol_count;
	const uint8_t *rest; /* the symbols and what follows them */
	size_t rest_size;
};

/* Gets the file at *offset of the section and moves *offset behind it.  Returns 1, 0 at the end, or
 * -EBADMSG.  The path points into the section. */
int tally_simpleperf_next(const void *section, size_t size, size_t *offset,
			  struct tally_simpleperf_file *out);

/* Makes a table of a file's symbols; the section must outlive it.  `min_offset` gets the offset of
 * min_address in an ELF file; UINT64_MAX: unknown.  Returns 0, -EBADMSG or -ENOMEM. */
int tally_symbols_from_simpleperf(const struct tally_simpleperf_file *file, uint64_t *min_offset,
				  struct tally_symbols **out);

#endif

/* Reads the records of a JIT's dump: of whole dumps (jit_dump.c) and growing ones (jit_growth.c).
 */
#ifndef TALLY_SYMBOL_JIT_DUMP_PARSER_H
#define TALLY_SYMBOL_JIT_DUMP_PARSER_H

#include "base/map.h"
#include "base/reader.h"
#include "symbol/jit_dump.h"

enum { TALLY_JIT_HEADER_BYTES = 40, TALLY_JIT_PREFIX_BYTES = 16 };

struct tally_jit_parser {
	struct tally_jit_dump *dump;
	struct tally_reader reader; /* reads a record's body */
	struct tally_map function_of_number;
	/* the last DEBUG_INFO, until its LOAD comes; no bytes: none */
	struct tally_reader debug;
	const uint8_t *eh_frame; /* of the last UNWINDING_INFO, until its LOAD comes */
	size_t eh_frame_size;
	uint64_t time_ns, last_ns, base;
	bool is_unordered;
	/* Optional: for a reader whose bytes don't stay.  Copies what the function needs of them.
	 * Returns 0, 1 to leave the function out, or -ENOMEM.  Lines are not read then, and places
	 * come in the order of the records. */
	int (*keep)(struct tally_jit_parser *parser, struct tally_jit_function *function);
};

/* Reads the dump's header, and sets *total to its bytes.  Returns false when this is no dump, or
 * one of an unknown version. */
bool tally_jit_parser_header(struct tally_jit_dump *dump, struct tally_reader *reader,
			     uint32_t *total, struct tally_error *err);

/* Reads the whole records that `bytes` begin with, and sets *read to their bytes.  Returns 0 or
 * -ENOMEM: a dump that ends within a record is no error, since it may still be written. */
int tally_jit_parser_records(struct tally_jit_parser *parser, const uint8_t *bytes, size_t size,
			     bool swap, size_t *read);

#endif

/* Builds an .eh_frame byte by byte, and reads the table of rules from it. */
#ifndef TALLY_TEST_CFI_FIXTURE_H
#define TALLY_TEST_CFI_FIXTURE_H

#include "test.h"

#include "unwind/unwind_internal.h"

/* Addresses: the section is at SECTION, its functions at CODE and above. */
enum { SECTION = 0x100000, CODE = 0x1000, RBX = 3, RSI = 4, R12 = 12 };

struct cfi {
	uint8_t bytes[8192];
	size_t size;
};

#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

static inline void put(struct cfi *cfi, const void *bytes, size_t size)
{
	assert_true(cfi->size + size <= sizeof(cfi->bytes));
	if (size)
		memcpy(cfi->bytes + cfi->size, bytes, size);
	cfi->size += size;
}

static inline void put_u32(struct cfi *cfi, uint32_t value)
{
	put(cfi, &value, sizeof(value));
}

static inline void put_u64(struct cfi *cfi, uint64_t value)
{
	put(cfi, &value, sizeof(value));
}

static inline size_t begin(struct cfi *cfi, uint32_t id)
{
	size_t at = cfi->size;
	put_u32(cfi, 0);
	put_u32(cfi, id);
	return at;
}

static inline void finish(struct cfi *cfi, size_t at)
{
	uint32_t length = (uint32_t)(cfi->size - at - 4);
	memcpy(cfi->bytes + at, &length, sizeof(length));
}

/* Adds a CIE: version 1, code × 1, data × −8, rip in column 16.  Returns its position. */
static inline size_t put_cie(struct cfi *cfi, const char *augmentation, const uint8_t *data,
			     size_t data_size, const uint8_t *instructions, size_t size)
{
	size_t at = begin(cfi, 0);
	put(cfi, BYTES(1));
	put(cfi, augmentation, strlen(augmentation) + 1);
	put(cfi, BYTES(1, 0x78, 16));
	if (augmentation[0] == 'z')
		put(cfi, BYTES((uint8_t)data_size));
	put(cfi, data, data_size);
	put(cfi, instructions, size);
	finish(cfi, at);
	return at;
}

/* Adds a CIE for a function's entry: CFA = rsp + 8, rip at CFA − 8; addresses are absolute, 8
 * bytes. */
static inline size_t put_usual_cie(struct cfi *cfi)
{
	return put_cie(cfi, "", NULL, 0, BYTES(0x0c, 7, 8, 0x90, 1));
}

static inline void put_fde(struct cfi *cfi, size_t cie, uint64_t start, uint64_t size,
			   const uint8_t *instructions, size_t count)
{
	size_t at = begin(cfi, (uint32_t)(cfi->size + 4 - cie));
	put_u64(cfi, start);
	put_u64(cfi, size);
	put(cfi, instructions, count);
	finish(cfi, at);
}

static inline struct tally_unwind_table *table_of(const void *bytes, size_t size,
						  bool is_debug_frame)
{
	struct tally_unwind_table *table;
	struct tally_cfi_section section = { .bytes = bytes,
					     .size = size,
					     .address = SECTION,
					     .machine = TALLY_UNWIND_X86_64,
					     .text_address = CODE,
					     .data_address = 2 * CODE,
					     .is_debug_frame = is_debug_frame };
	assert_int_equal(tally_unwind_table_new_from_bytes(&section, NULL, &table, NULL), 0);
	return table;
}

#endif

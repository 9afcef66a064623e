/* Converts perf_event's data from the other byte order, in place, so that decoders see only this
 * machine's order.
 *
 * Swapping must know the layout: a record's fields have 2, 4 or 8 bytes, while strings, build-ids,
 * code and a tracepoint's data stay as they are.  Bit-fields need more than swapped bytes:
 * compilers begin them at a word's lowest bit on little-endian machines, at the highest on
 * big-endian ones.  The kernel's headers declare some in both ways (data_src); the others are
 * mirrored here: attr.flags, and the flags of branches.
 *
 * The input is untrusted: swapping stops at the first thing that doesn't fit, and decoding fails at
 * the same place.  Freestanding. */
#ifndef TALLY_ABI_BYTE_SWAP_H
#define TALLY_ABI_BYTE_SWAP_H

#include "abi/record.h"

/* A cursor over bytes to be swapped.  Once something does not fit, it stays at the end. */
struct tally_swapper {
	uint8_t *at, *end;
};

/* Swap one field (of any alignment), and return its value in this machine's order; 0 if it doesn't
 * fit. */
uint16_t tally_swap_u16(struct tally_swapper *swapper);
uint32_t tally_swap_u32(struct tally_swapper *swapper);
uint64_t tally_swap_u64(struct tally_swapper *swapper);
/* Skips bytes without byte order. */
void tally_swap_skip(struct tally_swapper *swapper, uint64_t bytes);

/* Swaps fields that a string describes: '2', '4', '8' is a field of that size; 's' a string of
 * perf.data's features (a u32 with the room, then the room); '*' repeats the field before it up to
 * the end; "{…}" is a u32 count, and the fields in the braces that many times. */
void tally_swap_fields(struct tally_swapper *swapper, const char *fields);

/* Swaps an attribute of `size` bytes, which may be of any version. */
void tally_attr_swap(void *attr, size_t size);

/* Swaps a record of one of the kernel's types.  The fields of its header are swapped already, and
 * all `header.size` bytes are present.  `attr`, in this machine's order, is that of the event that
 * wrote it.  A copied stack is treated as words of 8 bytes. */
void tally_record_swap(const struct tally_attr *attr, void *record);

/* Converts the flags of a branch, from a word that was swapped, to the order of this machine's
 * bit-fields. */
uint64_t tally_branch_flags_mirror(uint64_t flags);

#endif

/* perf_event's data turned into the other byte order, in place: so that what decodes it sees this
 * machine's order alone.
 *
 * Swapping must know what it swaps: a record's fields are of 2, 4 and 8 bytes, and strings,
 * build-ids, code and what a tracepoint recorded stay as they are.  Bit-fields are another matter
 * than bytes: compilers begin them at a word's lowest bit on little-endian machines and at the
 * highest on big-endian ones.  Where the kernel's headers don't declare them twice (as they do for
 * data_src), they are mirrored: attr.flags, and the flags of branches.
 *
 * Nothing is believed: what doesn't fit ends the swapping, and decoding fails at the same place.
 * Freestanding.
 */
#ifndef TALLY_ABI_BYTE_SWAP_H
#define TALLY_ABI_BYTE_SWAP_H

#include "abi/record.h"

/* A cursor over bytes to be swapped; it stays at the end from where something did not fit. */
struct tally_swapper {
	uint8_t *at, *end;
};

/* Swap one field (any alignment) and give its value in this machine's order; 0 where it doesn't
 * fit. */
uint16_t tally_swap_u16(struct tally_swapper *swapper);
uint32_t tally_swap_u32(struct tally_swapper *swapper);
uint64_t tally_swap_u64(struct tally_swapper *swapper);
/* Passes over bytes that have no order. */
void tally_swap_skip(struct tally_swapper *swapper, uint64_t bytes);

/* Fields by their sizes: '2', '4', '8'; 's' a string of features (a u32 of room, and the room); '*'
 * the field before it, again and again to the end; "{…}" a u32 count, and what is in the braces
 * that many times. */
void tally_swap_fields(struct tally_swapper *swapper, const char *fields);

/* `size` bytes of an attribute, of which `size` fields of any version are known. */
void tally_attr_swap(void *attr, size_t size);

/* A record of the kernel's types, its header's own fields already swapped (`header.size` is all
 * there).  `attr`, in this machine's order, is the event that wrote it.  The copy of a stack is
 * taken for words of 8 bytes. */
void tally_record_swap(const struct tally_attr *attr, void *record);

/* The flags of a branch as they are in a word that was swapped, in the order of this machine's
 * bit-fields. */
uint64_t tally_branch_flags_mirror(uint64_t flags);

#endif

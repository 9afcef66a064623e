/* Stores equal chains once: a hash map finds the chain, and each sample has the number of its
 * chain.  In the section, an address is written as its distance from the one before. */
#include "naming/packed.h"

#include "base/reader.h"
#include "base/vector.h"
#include "perfdata/perfdata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_MAX = 1 << 16 }; /* in a chain */

bool tally_packed_stacks_at(const struct tally_packed_stacks *stacks, uint64_t sample,
			    struct tally_unwound_stack *out, struct tally_packed_need *need)
{
	if (sample >= stacks->samples.count)
		return false;
	uint32_t number = stacks->samples.items[sample];
	*out = (struct tally_unwound_stack){ 0 };
	*need = (struct tally_packed_need){ 0 };
	if (sample < stacks->needs.count)
		*need = stacks->needs.items[sample];
	if (number) {
		const struct tally_packed_chain *chain = &stacks->chains.items[number - 1];
		*out = (struct tally_unwound_stack){ stacks->addresses.items + chain->first,
						     stacks->is_exact.items + chain->first,
						     chain->count, chain->is_cut,
						     chain->is_complete };
	}
	return true;
}

/* ---- making -------------------------------------------------------------- */

static uint64_t hash_stack(const struct tally_unwound_stack *stack)
{
	uint64_t hash = (uint64_t)stack->count << 2 | (uint64_t)stack->is_cut << 1 |
			stack->is_complete;
	for (uint32_t i = 0; i < stack->count; i++)
		hash = tally_hash64(hash ^ (stack->addresses[i] << 1 | stack->is_exact[i])) + i;
	return hash;
}

static bool is_equal(const struct tally_packed_stacks *stacks,
		     const struct tally_packed_chain *chain,
		     const struct tally_unwound_stack *stack)
{
	return chain->count == stack->count && chain->is_cut == stack->is_cut &&
	       chain->is_complete == stack->is_complete &&
	       !memcmp(stacks->addresses.items + chain->first, stack->addresses,
		       stack->count * sizeof(*stack->addresses)) &&
	       !memcmp(stacks->is_exact.items + chain->first, stack->is_exact,
		       stack->count * sizeof(*stack->is_exact));
}

static int add_chain(struct tally_packed_stacks *stacks, const struct tally_unwound_stack *stack)
{
	struct tally_packed_chain chain = { stacks->addresses.count, stack->count, stack->is_cut,
					    stack->is_complete };
	if (tally_vector_reserve(&stacks->addresses, chain.first + stack->count) < 0 ||
	    tally_vector_reserve(&stacks->is_exact, chain.first + stack->count) < 0)
		return -ENOMEM;
	memcpy(stacks->addresses.items + chain.first, stack->addresses,
	       stack->count * sizeof(*stack->addresses));
	memcpy(stacks->is_exact.items + chain.first, stack->is_exact,
	       stack->count * sizeof(*stack->is_exact));
	stacks->addresses.count = stacks->is_exact.count = chain.first + stack->count;
	return tally_vector_push(&stacks->chains, chain);
}

/* Returns the chain's number + 1; 0 when memory is out. */
static uint32_t intern(struct tally_packed_stacks *stacks, const struct tally_unwound_stack *stack)
{
	for (uint64_t key = hash_stack(stack);; key++) {
		bool added;
		uint64_t *number = tally_map_put(&stacks->index, key, &added);
		if (!number)
			return 0;
		if (!added && is_equal(stacks, &stacks->chains.items[*number], stack))
			return (uint32_t)*number + 1;
		if (!added)
			continue;
		*number = stacks->chains.count;
		if (*number >= UINT32_MAX - 1 || add_chain(stacks, stack) < 0)
			return 0;
		return (uint32_t)*number + 1;
	}
}

static int put_sample(struct tally_packed_stacks *stacks, uint64_t sample, uint32_t number,
		      struct tally_packed_need need)
{
	while (stacks->samples.count <= sample)
		if (tally_vector_push(&stacks->samples, 0) < 0)
			return -ENOMEM;
	stacks->samples.items[sample] = number;
	if (!number || !stacks->chains.items[number - 1].is_cut)
		return 0;
	while (stacks->needs.count <= sample)
		if (tally_vector_push(&stacks->needs, (struct tally_packed_need){ 0 }) < 0)
			return -ENOMEM;
	stacks->needs.items[sample] = need;
	return 0;
}

int tally_packed_stacks_note(struct tally_packed_stacks *stacks, uint64_t sample,
			     const struct tally_unwound_stack *stack, struct tally_packed_need need)
{
	uint32_t number = 0;
	if (stack->count) {
		number = intern(stacks, stack);
		if (!number)
			return -ENOMEM;
	}
	return put_sample(stacks, sample, number, need);
}

void tally_packed_stacks_write(const struct tally_packed_stacks *stacks,
			       struct tally_buffer *section)
{
	struct tally_buffer out = { 0 };
	tally_own_put_number(&out, stacks->chains.count);
	for (size_t i = 0; i < stacks->chains.count; i++) {
		const struct tally_packed_chain *chain = &stacks->chains.items[i];
		uint64_t last = 0;
		tally_own_put_number(&out, (uint64_t)chain->count << 2 |
						   (uint64_t)chain->is_cut << 1 |
						   chain->is_complete);
		for (uint32_t frame = 0; frame < chain->count; frame++) {
			uint64_t address = stacks->addresses.items[chain->first + frame];
			tally_own_put_number(&out, stacks->is_exact.items[chain->first + frame]);
			tally_own_put_step(&out, address - last);
			last = address;
		}
	}
	for (size_t i = 0; i < stacks->samples.count; i++) {
		uint32_t number = stacks->samples.items[i];
		tally_own_put_number(&out, number);
		if (number && stacks->chains.items[number - 1].is_cut)
			tally_own_put_number(&out, (uint64_t)stacks->needs.items[i].bytes << 1 |
							   stacks->needs.items[i].is_at_most);
	}
	section->failed |= out.failed;
	if (!out.failed)
		tally_own_feature_add(section, TALLY_OWN_STACKS, out.bytes, out.length);
	tally_buffer_release(&out);
}

/* ---- reading ------------------------------------------------------------- */

static int read_chain(struct tally_packed_stacks *stacks, struct tally_reader *reader)
{
	uint64_t shape = tally_reader_uleb(reader), last = 0;
	struct tally_packed_chain chain = { stacks->addresses.count, (uint32_t)(shape >> 2),
					    shape >> 1 & 1, shape & 1 };
	if (reader->failed || shape >> 2 > FRAMES_MAX)
		return -EBADMSG;
	for (uint32_t frame = 0; frame < chain.count; frame++) {
		bool is_exact = tally_reader_uleb(reader) & 1;
		uint64_t step = tally_reader_uleb(reader);
		last += tally_packed_step(step);
		if (reader->failed)
			return -EBADMSG;
		if (tally_vector_push(&stacks->addresses, last) < 0 ||
		    tally_vector_push(&stacks->is_exact, is_exact) < 0)
			return -ENOMEM;
	}
	return tally_vector_push(&stacks->chains, chain);
}

static bool tables_fit(const struct tally_packed_stacks *stacks, uint64_t tables_max)
{
	return tally_own_tables_fit(stacks->addresses.count * sizeof(*stacks->addresses.items) +
					    stacks->is_exact.count *
						    sizeof(*stacks->is_exact.items) +
					    stacks->chains.count * sizeof(*stacks->chains.items) +
					    stacks->samples.count *
						    sizeof(*stacks->samples.items) +
					    stacks->needs.count * sizeof(*stacks->needs.items),
				    tables_max);
}

static int read_part(struct tally_packed_stacks *stacks, struct tally_reader *reader,
		     uint64_t tables_max)
{
	int result = 0;
	for (uint64_t left = tally_reader_uleb(reader); !result && left; left--) {
		if (!tables_fit(stacks, tables_max))
			return -EFBIG;
		result = read_chain(stacks, reader);
	}
	while (!result && tally_reader_left(reader)) {
		if (!tables_fit(stacks, tables_max))
			return -EFBIG;
		uint64_t number = tally_reader_uleb(reader), need = 0;
		if (number > stacks->chains.count)
			return -EBADMSG;
		if (number && stacks->chains.items[number - 1].is_cut)
			need = tally_reader_uleb(reader);
		if (reader->failed)
			return -EBADMSG;
		result = put_sample(stacks, stacks->samples.count, (uint32_t)number,
				    (struct tally_packed_need){ (uint32_t)(need >> 1), need & 1 });
	}
	if (reader->failed)
		return -EBADMSG;
	return result;
}

int tally_packed_stacks_read(const void *section, size_t size, struct tally_packed_stacks **out)
{
	struct tally_packed_stacks *stacks = *out = calloc(1, sizeof(*stacks));
	struct tally_buffer part = { 0 };
	struct tally_reader reader;
	if (!stacks)
		return -ENOMEM;
	int result = tally_own_feature_get(section, size, TALLY_OWN_STACKS, &part);
	if (result > 0) {
		tally_reader_init(&reader, part.bytes, part.length, false);
		result = read_part(stacks, &reader, tally_own_tables_max(size));
		if (!result)
			result = 1;
	}
	tally_buffer_release(&part);
	if (result > 0)
		return 1;
	tally_packed_stacks_free(stacks);
	*out = NULL;
	return result;
}

void tally_packed_stacks_free(struct tally_packed_stacks *stacks)
{
	if (!stacks)
		return;
	tally_vector_release(&stacks->addresses);
	tally_vector_release(&stacks->is_exact);
	tally_vector_release(&stacks->chains);
	tally_vector_release(&stacks->samples);
	tally_vector_release(&stacks->needs);
	tally_map_release(&stacks->index);
	free(stacks);
}

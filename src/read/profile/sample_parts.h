/* Parts of a sample that are packed into words, as numbers and in the words of `perf script` and
 * `perf report`: flags of branches, weights, transactions, page sizes, sources of data. */
#ifndef TALLY_PROFILE_SAMPLE_PARTS_H
#define TALLY_PROFILE_SAMPLE_PARTS_H

#include "base/buffer.h"
#include "tally/perf_event.h"
#include "tally/record.h"

#include <stdint.h>

/* Flags of a branch, as in struct perf_branch_entry. */
enum {
	TALLY_BRANCH_MISPREDICTED = 1,
	TALLY_BRANCH_PREDICTED = 2,
	TALLY_BRANCH_TRANSACTION = 4,
	TALLY_BRANCH_ABORTED = 8,
	TALLY_BRANCH_CYCLES_SHIFT = 4,
	TALLY_BRANCH_KIND_SHIFT = 20
};

/* The parts of a sample's weight: PERF_SAMPLE_WEIGHT is one number, PERF_SAMPLE_WEIGHT_STRUCT
 * three.  0: the sample has none. */
static inline uint64_t tally_sample_cost(const struct tally_sample *sample)
{
	if (sample->type & TALLY_SAMPLE_WEIGHT_STRUCT)
		return (uint32_t)sample->weight;
	return sample->weight;
}

static inline uint64_t tally_sample_latency(const struct tally_sample *sample)
{
	if (sample->type & TALLY_SAMPLE_WEIGHT_STRUCT)
		return sample->weight >> 32 & 0xffff;
	return 0;
}

static inline uint64_t tally_sample_stage_cycles(const struct tally_sample *sample)
{
	if (sample->type & TALLY_SAMPLE_WEIGHT_STRUCT)
		return sample->weight >> 48;
	return 0;
}

/* Appends "4K", "2M" or, as perf does, "1024M"; "N/A" for no page. */
void tally_page_size_text(uint64_t bytes, struct tally_buffer *out);

/* Appends "TX CON NEITHER :2a", the flags of PERF_SAMPLE_TRANSACTION; "-" for none. */
void tally_transaction_text(uint64_t flags, struct tally_buffer *out);

/* Appends a PERF_SAMPLE_DATA_SRC: "|OP LOAD|LVL L1 hit|SNP None|TLB L1 hit|LCK No|BLK  N/A". */
void tally_data_source_text(uint64_t data_src, struct tally_buffer *out);

/* Append one part of it, such as "L1 hit" or "Data Addr". */
void tally_data_level_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_snoop_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_tlb_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_lock_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_block_text(uint64_t data_src, struct tally_buffer *out);

#endif

/* What a sample says besides its place, as texts that a report can be sorted by: costs, addresses,
 * pages, where data was. */
#ifndef TALLY_PROFILE_SAMPLE_VALUES_H
#define TALLY_PROFILE_SAMPLE_VALUES_H

#include "base/buffer.h"
#include "profile/recording.h"
#include "profile/sample_facts.h"
#include "profile/trace_text.h"

/* PERF_SAMPLE_WEIGHT is one number, PERF_SAMPLE_WEIGHT_STRUCT three.  0 where a sample has none. */
static inline uint64_t tally_sample_cost(const struct tally_sample *sample)
{
	return sample->type & TALLY_SAMPLE_WEIGHT_STRUCT ? (uint32_t)sample->weight
							 : sample->weight;
}

static inline uint64_t tally_sample_latency(const struct tally_sample *sample)
{
	return sample->type & TALLY_SAMPLE_WEIGHT_STRUCT ? sample->weight >> 32 & 0xffff : 0;
}

static inline uint64_t tally_sample_stage_cycles(const struct tally_sample *sample)
{
	return sample->type & TALLY_SAMPLE_WEIGHT_STRUCT ? sample->weight >> 48 : 0;
}

/* "4K", "2M", and, as perf has it, "1024M"; "N/A" of no page. */
void tally_page_size_text(uint64_t bytes, struct tally_buffer *out);

/* "TX CON NEITHER :2a": the flags of struct perf_event_attr's PERF_SAMPLE_TRANSACTION in perf's
 * words; "-" of none. */
void tally_transaction_text(uint64_t flags, struct tally_buffer *out);

/* Of one recording, read from its beginning.  Zero-initialised but for what is said. */
struct tally_sample_values {
	struct tally_recording *recording; /* to be set */
	uint64_t quantum_ns;               /* of times; to be set */
	struct tally_map known[TALLY_VALUES]; /* what is told by a number: its text */
	struct tally_buffer text;
	/* of data: the text that tells all apart → a shorter one << 32 and the shortest */
	struct tally_map longest;
	struct tally_map owners;  /* shorter text → of how many longest ones it is */
	struct tally_trace_text trace;
	uint32_t *packages; /* by CPU, once read; NULL: the recording doesn't tell */
	uint32_t package_count;
	bool packages_read;
};

/* Sets `out` (TALLY_VALUES of them), for the values asked for by `facts`, to string ids of the
 * recording's names; "?" for what the sample lacks.  Maps must be as they were at the sample's
 * time.  Values of branches are left alone.  0 or -ENOMEM. */
int tally_sample_values_read(struct tally_sample_values *values,
			     const struct tally_recorded_event *event,
			     const struct tally_sample *sample, unsigned facts, uint32_t *out);

/* "0x7f0012345678" as such an id; TALLY_STRING_NONE when memory is out. */
uint32_t tally_sample_values_address(struct tally_sample_values *values,
				     enum tally_sample_value value, uint64_t address);

/* When all have been read: what lies at addresses of data is called as shortly as tells it from all
 * else. */
void tally_sample_values_shorten(const struct tally_sample_values *values,
				 struct tally_fact_table *facts);

void tally_sample_values_release(struct tally_sample_values *values);

#endif

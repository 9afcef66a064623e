/* A sample's values besides its place, as texts that a report can be sorted by: costs, addresses,
 * pages, sources of data. */
#ifndef TALLY_PROFILE_SAMPLE_VALUES_H
#define TALLY_PROFILE_SAMPLE_VALUES_H

#include "base/buffer.h"
#include "recording/recording.h"
#include "profile/sample_facts.h"
#include "recording/trace_text.h"

/* The parts of a sample's weight: PERF_SAMPLE_WEIGHT is one number, PERF_SAMPLE_WEIGHT_STRUCT
 * three.  0: the sample has none. */
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

/* Appends "4K", "2M" or, as perf does, "1024M"; "N/A" for no page. */
void tally_page_size_text(uint64_t bytes, struct tally_buffer *out);

/* The values of one recording, read from its beginning.  Zero-initialise it, except for the members
 * to be set. */
struct tally_sample_values {
	struct tally_recording *recording; /* to be set */
	uint64_t quantum_ns;               /* resolution of times, ns; to be set */
	struct tally_map known[TALLY_VALUES]; /* for values that are a number: number → text */
	struct tally_buffer text;
	/* for data: the text that is unique → a shorter text << 32 | the shortest */
	struct tally_map longest;
	struct tally_map owners;  /* shorter text → number of unique texts that it stands for */
	struct tally_trace_text trace;
	uint32_t *packages; /* by CPU, once read; NULL: the recording doesn't have them */
	uint32_t package_count;
	bool packages_read;
};

/* Sets the values in `out` (TALLY_VALUES of them) that `facts` needs to string ids of the
 * recording's names; "?" if the sample lacks one.  The maps must be as they were at the sample's
 * time.  Values of branches are not touched.  Returns 0 or -ENOMEM. */
int tally_sample_values_read(struct tally_sample_values *values,
			     const struct tally_recorded_event *event,
			     const struct tally_sample *sample, unsigned facts, uint32_t *out);

/* Returns the string id of an address, such as "0x7f0012345678"; TALLY_STRING_NONE when memory is
 * out. */
uint32_t tally_sample_values_address(struct tally_sample_values *values,
				     enum tally_sample_value value, uint64_t address);

/* Call this when all samples are read: replaces the texts of data addresses by the shortest ones
 * that are still unique. */
void tally_sample_values_shorten(const struct tally_sample_values *values,
				 struct tally_fact_table *facts);

void tally_sample_values_release(struct tally_sample_values *values);

#endif

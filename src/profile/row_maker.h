/* Samples whose chains are hashed → rows of a profile, for sample_reader.c alone.
 *
 * Chains that were seen before have their rows by their hashes; only what is new is taken apart.
 * Not thread-safe, but what it works with is apart from what makes the samples: it changes the
 * profile's rows, places and `filtered`, and reads its tasks.
 */
#ifndef TALLY_PROFILE_ROW_MAKER_H
#define TALLY_PROFILE_ROW_MAKER_H

#include "profile/chain_table.h"
#include "profile/profile.h"

enum { TALLY_SLICE = 32 /* samples on their way from memory at a time */ };

struct tally_hashed_sample {
	struct tally_chain_hash hash;
	const uint64_t *words; /* the chain; `ip` where it has no address */
	uint64_t ip;
	uint64_t user_maps, kernel_maps; /* generations */
	uint64_t period;
	uint32_t count, pid, class;
	bool is_kernel; /* by the record's cpumode */
	bool is_ip;
	bool is_cut;    /* the stack went on: the recorder's copy of it ended */
};

/* A sample of which its own address alone is asked for. */
struct tally_leaf_sample {
	uint64_t ip, period;
	uint64_t maps; /* the generation of those that have it: the kernel's, or the process's */
	uint32_t pid, class;
	bool is_kernel;
};

struct tally_row_maker;

/* NULL when memory is out.  `options` must outlive it. */
struct tally_row_maker *tally_row_maker_new(struct tally_profile *profile,
					    const struct tally_profile_options *options);
void tally_row_maker_free(struct tally_row_maker *maker);

/* What chains are to be hashed with. */
const struct tally_chain_table *tally_row_maker_chains(const struct tally_row_maker *maker);

/* Adds samples; `share` of the recording is read with them, 0 where that is not known.  0 or
 * -ENOMEM. */
int tally_row_maker_add(struct tally_row_maker *maker, const struct tally_hashed_sample *samples,
			size_t count, double share);

/* Adds one sample at once.  0 or -ENOMEM. */
int tally_row_maker_add_leaf(struct tally_row_maker *maker, const struct tally_leaf_sample *sample);

/* Of who wants the names of places alone: adds one sample, whose hash isn't asked for.  0 or
 * -ENOMEM. */
int tally_row_maker_add_places(struct tally_row_maker *maker,
			       const struct tally_hashed_sample *sample);

/* Adds a sample whose stack is the recording's chain: places.  0 or -ENOMEM. */
int tally_row_maker_add_unwound(struct tally_row_maker *maker, uint32_t class, uint64_t period);

/* Adds what has one place for its stack.  0 or -ENOMEM. */
int tally_row_maker_add_place(struct tally_row_maker *maker, uint32_t class, uint32_t place,
			      uint64_t period);

#endif

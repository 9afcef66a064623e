/* Samples with hashed chains → rows of a profile.  Only sample_reader.c uses this.
 *
 * A chain that was seen before has its row by its hash; only a new chain is taken apart.  Not
 * thread-safe, but its data is separate from that of the code that makes the samples: it changes
 * the profile's rows, places and `filtered`, and reads its tasks.
 */
#ifndef TALLY_PROFILE_ROW_MAKER_H
#define TALLY_PROFILE_ROW_MAKER_H

#include "profile/chain_table.h"
#include "profile/profile.h"

enum { TALLY_SLICE = 32 /* samples that are handled together */ };

struct tally_hashed_sample {
	struct tally_chain_hash hash;
	const uint64_t *words; /* the chain; `ip` if it has no address */
	uint64_t ip;
	uint64_t user_maps, kernel_maps; /* generations of the maps */
	uint64_t period;
	uint32_t count, pid, class;
	bool is_kernel; /* the record's cpumode is kernel */
	bool is_ip;
	bool is_cut;    /* the stack went on beyond what was recorded */
	bool is_late;   /* the leaf's place is late */
};

/* A sample that only counts for its own address. */
struct tally_leaf_sample {
	uint64_t ip, period;
	uint64_t maps; /* generation of the maps that hold it: the kernel's or the process's */
	uint32_t pid, class;
	bool is_kernel, is_late;
};

struct tally_row_maker;

/* Returns NULL when memory is out.  `options` must outlive the maker. */
struct tally_row_maker *tally_row_maker_new(struct tally_profile *profile,
					    const struct tally_profile_options *options);
void tally_row_maker_free(struct tally_row_maker *maker);

/* Returns the table that chains must be hashed with. */
const struct tally_chain_table *tally_row_maker_chains(const struct tally_row_maker *maker);

/* Adds samples.  `share` is the part of the recording read so far; 0: not known.  Returns 0 or
 * -ENOMEM. */
int tally_row_maker_add(struct tally_row_maker *maker, const struct tally_hashed_sample *samples,
			size_t count, double share);

/* Adds one sample at once.  Returns 0 or -ENOMEM. */
int tally_row_maker_add_leaf(struct tally_row_maker *maker, const struct tally_leaf_sample *sample);

/* Places-only mode: adds one sample; its hash is ignored.  Returns 0 or -ENOMEM. */
int tally_row_maker_add_places(struct tally_row_maker *maker,
			       const struct tally_hashed_sample *sample);

/* Adds a sample whose stack is the recording's chain, as places.  Returns 0 or -ENOMEM. */
int tally_row_maker_add_unwound(struct tally_row_maker *maker, uint32_t class, uint64_t period);

/* Adds a sample with a stack of one place.  Returns 0 or -ENOMEM. */
int tally_row_maker_add_place(struct tally_row_maker *maker, uint32_t class, uint32_t place,
			      uint64_t period);

#endif

/* What tally's own section is put together from.  For pack_*.c. */
#ifndef TALLY_PROFILE_PACK_PARTS_H
#define TALLY_PROFILE_PACK_PARTS_H

#include "profile/profile.h"

struct tally_known_place {
	uint32_t file; /* as tally_names_file() has it */
	const struct tally_place *place;
	const struct tally_place_name *name;
};

struct tally_packer {
	struct tally_names *names;
	struct tally_place_name *other_names;
	struct tally_known_place *known;
	size_t count, asked;
	struct tally_map string_ids; /* the text's address → id + 1: interned texts have one */
	uint32_t string_count;
	uint32_t *function_ids; /* by the names' function: id + 1 */
	uint32_t function_count;
	struct tally_buffer strings, functions, places, sources;
};

/* The id + 1 of a text that lives as long as the packer, by its address; 0: no memory. */
uint64_t tally_pack_string(struct tally_packer *packer, const char *text);
/* The id of a function of the names. */
uint32_t tally_pack_function(struct tally_packer *packer, uint32_t number);

/* Part 6: the code of the functions that most samples are in, as far as it is to be had here.  0 or
 * -ENOMEM. */
int tally_pack_code(struct tally_packer *packer, struct tally_profile *profile,
		    struct tally_buffer *out);

#endif

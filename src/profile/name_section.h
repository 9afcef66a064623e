/* Common parts of the writer of tally's own section.  For pack_*.c only. */
#ifndef TALLY_PROFILE_NAME_SECTION_H
#define TALLY_PROFILE_NAME_SECTION_H

#include "profile/profile.h"

struct tally_known_place {
	uint32_t file; /* from tally_names_file() */
	const struct tally_place *place;
	const struct tally_place_name *name;
};

struct tally_packer {
	struct tally_names *names;
	struct tally_place_name *other_names;
	struct tally_known_place *known;
	size_t count, asked;
	struct tally_map string_ids; /* address of an interned text → id + 1 */
	uint32_t string_count;
	uint32_t *function_ids; /* by index of the names' function: id + 1 */
	uint32_t function_count;
	struct tally_buffer strings, functions, places, sources, declared;
};

/* Returns the id + 1 of a text, found by its address; the text must live as long as the packer.  0:
 * out of memory. */
uint64_t tally_pack_string(struct tally_packer *packer, const char *text);
/* Returns the id of a function of the names. */
uint32_t tally_pack_function(struct tally_packer *packer, uint32_t number);

/* Writes part 6: the code of the functions with most samples, as far as it is found here.  Returns
 * 0 or -ENOMEM. */
int tally_pack_code(struct tally_packer *packer, struct tally_profile *profile,
		    struct tally_buffer *out);

#endif

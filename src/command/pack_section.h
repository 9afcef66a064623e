/* The names of a recording's places, as tally's own section has them. */
#ifndef TALLY_COMMAND_PACK_SECTION_H
#define TALLY_COMMAND_PACK_SECTION_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>

struct tally_name_sources;
struct tally_objects;
struct tally_perf_maps;
struct tally_recording;

struct tally_pack_options {
	/* Each may be NULL.  How much has been read, 0…1; and the recording, once all is known of
	 * it. */
	void (*progress)(void *context, double share);
	void (*look)(void *context, const struct tally_recording *recording);
	void *context;
	const struct tally_perf_maps *perf_maps; /* held while recording; NULL: none */
	const struct tally_objects *files;       /* whose fetched ones are used, too; NULL: none */
	const struct tally_name_sources *names;  /* NULL: what the recording tells */
	struct tally_buffer *hint; /* gets how what has no name would have one (jit_hint.h); NULL:
				      not asked for */
	/* of the recording's data, which has its places; NULL: all is read */
	const struct tally_buffer *excerpt;
};

/* Reads the recording at `path` and names what was sampled.  `places` and `known` get how many
 * there are, and how many are named; `section` stays empty where nothing is.  0 or -errno with a
 * message. */
int tally_pack_section(const char *path, const struct tally_pack_options *options,
		       struct tally_buffer *section, size_t *places, size_t *known,
		       struct tally_error *err);

/* Writes the recording at `path` with the section to `output`, which may be the same and is
 * replaced once the new file is whole.  0 or -errno with a message. */
int tally_pack_write(const char *path, const char *output, const struct tally_buffer *section,
		     struct tally_error *err);

#endif

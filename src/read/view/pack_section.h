/* Names a recording's places, for tally's own section. */
#ifndef TALLY_VIEW_PACK_SECTION_H
#define TALLY_VIEW_PACK_SECTION_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>

struct tally_jit_files;
struct tally_name_sources;
struct tally_objects;
struct tally_perf_maps;
struct tally_recording;

struct tally_pack_options {
	/* Callbacks; each may be NULL. `progress`: the share that was read, 0 to 1. `look`: the
	 * recording, after it was read. */
	void (*progress)(void *context, double share);
	void (*look)(void *context, const struct tally_recording *recording);
	void *context;
	const struct tally_perf_maps *perf_maps; /* read while recording; NULL: none */
	const struct tally_jit_files *jit_files; /* opened while recording; NULL: none */
	const struct tally_objects *files;       /* its fetched debug files are used; NULL: none */
	const struct tally_name_sources *names;  /* NULL: only what the recording contains */
	/* receives a hint on how to get missing names (jit_hint.h); NULL: no hint */
	struct tally_buffer *hint;
	/* the part of the recording's data that has its places; NULL: read all */
	const struct tally_buffer *excerpt;
};

/* Reads the recording at `path` and names its places. Stores the number of places in `places`, and
 * the number of named ones in `known`; `section` stays empty if there is none. Returns 0, or -errno
 * with a message. */
int tally_pack_section(const char *path, const struct tally_pack_options *options,
		       struct tally_buffer *section, size_t *places, size_t *known,
		       struct tally_error *err);

/* The same for a recording that was just written: the file open at `fd`, or the one called `name` if
 * that can't be opened again. */
int tally_pack_open_file(int fd, const char *name, const struct tally_pack_options *options,
			 struct tally_buffer *section, struct tally_error *err);

/* Writes the recording at `path`, with the section, to `output`. `output` may be the same file, and
 * is replaced once the new one is complete. Returns 0, or -errno with a message. */
int tally_pack_write(const char *path, const char *output, const struct tally_buffer *section,
		     struct tally_error *err);

#endif

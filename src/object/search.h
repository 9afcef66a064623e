/* Where the files behind a recording are looked for, when their own path does not do.
 *
 * What is found by build-id is what was recorded, wherever it lies.  The texts are the caller's and
 * must outlive the use; several threads may search at once.
 */
#ifndef TALLY_OBJECT_SEARCH_H
#define TALLY_OBJECT_SEARCH_H

#include "object/object.h"

struct tally_object_search {
	const char *root;      /* --symfs: a folder that stands for "/"; NULL: this machine's own */
	/* perf's cache of copies (perf-buildid-cache(1)); NULL: $HOME/.debug */
	const char *build_ids;
};

/* The file at a path of the recording's, below the search's root: tally_object_open() otherwise.  0
 * or -errno. */
int tally_search_open(const struct tally_object_search *search, const char *path,
		      struct tally_object **out);

/* Of two files that perf's cache keeps by build-id: the object itself, and a file of debug
 * information. */
struct tally_object *tally_search_by_build_id(const struct tally_object_search *search,
					      const struct tally_build_id *id);

/* /proc/kallsyms of a kernel that perf kept, or the file of another name in the folder of a
 * build-id: its path, or false when there is none.  `size` of `path`: PATH_MAX. */
bool tally_search_kept_path(const struct tally_object_search *search,
			    const struct tally_build_id *id, const char *name, char *path);

/* The separate debug file of an object, below the search's root and below this machine's: by
 * build-id in usr/lib/debug/.build-id, then .gnu_debuglink (CRC checked) beside the object, in
 * .debug/ and in usr/lib/debug, then by build-id in perf's cache.  Last .gnu_debugdata, a small
 * table of symbols in the object itself, unless it has a large one.  *lack (may be NULL) says when
 * one may be there that can't be read: -ENOPKG without liblzma, which the last needs; -ENOMEM.
 *
 * `search` NULL: none of its words.  New reference, or NULL when there is none. */
struct tally_object *tally_search_debug(const struct tally_object_search *search,
					const struct tally_object *object, int *lack);

#endif

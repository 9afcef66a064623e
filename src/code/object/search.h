/* The places of a recording's files other than their own path.
 *
 * A file found by build-id is the recorded one, wherever it lies.  The strings belong to the caller
 * and must outlive the use; several threads may search at once.
 */
#ifndef TALLY_OBJECT_SEARCH_H
#define TALLY_OBJECT_SEARCH_H

#include "object/object.h"

struct tally_object_search {
	const char *root;      /* --symfs: a folder that stands for "/"; NULL: this machine's "/" */
	/* perf's cache of copies (perf-buildid-cache(1)); NULL: $HOME/.debug */
	const char *build_ids;
};

/* Opens a path of the recording below the search's root, otherwise like tally_object_open().
 * Returns 0 or -errno. */
int tally_search_open(const struct tally_object_search *search, const char *path,
		      struct tally_object **out);

/* Finds an object by build-id in perf's cache or among the installed debug files.  Returns a new
 * reference, or NULL. */
struct tally_object *tally_search_by_build_id(const struct tally_object_search *search,
					      const struct tally_build_id *id);

/* Gets the path of the file `name` in the folder that perf's cache keeps for a build-id: "kallsyms"
 * of a kernel, for example.  `path` has room for PATH_MAX bytes.  Returns false when there is
 * none. */
bool tally_search_kept_path(const struct tally_object_search *search,
			    const struct tally_build_id *id, const char *name, char *path);

/* Finds the separate debug file of an object.  Looks below the search's root, then below this
 * machine's: by build-id in usr/lib/debug/.build-id, then by .gnu_debuglink (CRC checked) beside
 * the object, in .debug/ and in usr/lib/debug.  Then by build-id in perf's cache.  Last, unless the
 * object has a .symtab, it takes .gnu_debugdata, a small symbol table in the object itself.
 *
 * *lack (may be NULL) is set when a debug file may exist but can't be read: -ENOPKG without
 * liblzma, which .gnu_debugdata needs; -ENOMEM.  `search` may be NULL: then only the default places
 * are searched.  Returns a new reference, or NULL when there is none. */
struct tally_object *tally_search_debug(const struct tally_object_search *search,
					const struct tally_object *object, int *lack);

#endif

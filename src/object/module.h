/* A kernel's module (.ko) as it lies in memory: an object that isn't linked yet (ET_REL), linked as
 * the kernel did it.
 *
 * What comes of it is an object like any other: its symbols and its debug information tell
 * addresses.  64-bit modules of this machine's byte order; of machines whose relocations of debug
 * information aren't known (all but x86-64, arm64, s390x, ppc64) the symbols alone.  The file's
 * bytes are untrusted.
 */
#ifndef TALLY_OBJECT_MODULE_H
#define TALLY_OBJECT_MODULE_H

#include "object/object.h"

struct tally_object_search;

enum { TALLY_MODULE_NAME_BYTES = 64, TALLY_MODULE_DEPENDENCIES_BYTES_MAX = 16 << 20 };

/* What the kernel calls a module, by its path: "/lib/modules/6.1.0/kernel/net/nf-tables.ko.xz",
 * "[nf_tables]" → "nf_tables".  False: it is no module's path. */
bool tally_module_name(const char *path, char name[TALLY_MODULE_NAME_BYTES]);

/* The next module of modules.dep(5), whose text is terminated; moves *text behind its line.  False
 * when there is no more. */
struct tally_module_dependency {
	char name[TALLY_MODULE_NAME_BYTES];
	char path[4096]; /* below the folder of the release; nothing of it leads out of that */
};
bool tally_module_dependency_next(const char **text, struct tally_module_dependency *out);

/* Of a module that is loaded; false: it is not, or has none. */
bool tally_module_loaded_build_id(const char *name, struct tally_build_id *id);

/* A module's file, below the search's root, which may be compressed (xz, zstd, gzip).  0 or
 * -errno. */
int tally_module_open(const struct tally_object_search *search, const char *path,
		      struct tally_object **out);

/* Room for the addresses of an object's sections, by index; 0: it lies nowhere.  To be freed; NULL:
 * no memory.  */
uint64_t *tally_module_addresses(const struct tally_object *module, size_t *count);

/* Where the kernel puts the sections of code of a module that it loads at `start`
 * (kernel/module/main.c: by order of the file, each aligned; those of .init elsewhere). */
void tally_module_place(const struct tally_object *module, uint64_t start, uint64_t *addresses,
			size_t count);

/* Where they are, by a folder of files named like sections (/sys/module/NAME/sections).  False: it
 * doesn't tell. */
bool tally_module_place_by(const struct tally_object *module, const char *folder,
			   uint64_t *addresses, size_t count);

/* 0; -ENOTSUP: not of a kind that can be linked here; -EBADMSG, -ENOMEM.  `out` has the module's
 * path and build-id. */
int tally_module_link(const struct tally_object *module, const uint64_t *addresses, size_t count,
		      struct tally_object **out);

#endif

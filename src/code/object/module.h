/* A kernel module (.ko) as it lies in memory.  The file is not linked (ET_REL); this links it as
 * the kernel did.
 *
 * The result is an object like any other, whose symbols and debug information have addresses.  Only
 * 64-bit modules of this machine's byte order.  The result has only symbols on machines whose
 * relocations of debug information are unknown (all except x86-64, arm64, s390x, ppc64).  The
 * file's bytes are untrusted.
 */
#ifndef TALLY_OBJECT_MODULE_H
#define TALLY_OBJECT_MODULE_H

#include "object/object.h"

struct tally_object_search;

enum { TALLY_MODULE_NAME_BYTES = 64, TALLY_MODULE_DEPENDENCIES_BYTES_MAX = 16 << 20 };

/* Gets the kernel's name of a module from a path: "/lib/modules/6.1.0/kernel/net/nf-tables.ko.xz"
 * or "[nf_tables]" gives "nf_tables".  Returns false when it is no module's path. */
bool tally_module_name(const char *path, char name[TALLY_MODULE_NAME_BYTES]);

/* Gets the next module of a modules.dep(5) text, which ends in NUL, and moves *text behind its
 * line.  Returns false at the end. */
struct tally_module_dependency {
	char name[TALLY_MODULE_NAME_BYTES];
	char path[4096]; /* relative to the release's folder; contains no ".." */
};
bool tally_module_dependency_next(const char **text, struct tally_module_dependency *out);

/* Gets the build-id of a loaded module.  Returns false when it isn't loaded or has none. */
bool tally_module_loaded_build_id(const char *name, struct tally_build_id *id);

/* Opens a module's file below the search's root; it may be compressed (xz, zstd, gzip).  Returns 0
 * or -errno. */
int tally_module_open(const struct tally_object_search *search, const char *path,
		      struct tally_object **out);

/* Allocates an array for the addresses of a module's sections, by index; 0 means no address.  The
 * caller frees it.  Returns NULL without memory. */
uint64_t *tally_module_addresses(const struct tally_object *module, size_t *count);

/* Computes where the kernel puts the code sections of a module that it loads at `start`
 * (kernel/module/main.c: in the file's order, each aligned; .init sections go elsewhere). */
void tally_module_place(const struct tally_object *module, uint64_t start, uint64_t *addresses,
			size_t count);

/* Reads the sections' addresses from a folder of files named like the sections
 * (/sys/module/NAME/sections).  Returns false when it has none. */
bool tally_module_place_by(const struct tally_object *module, const char *folder,
			   uint64_t *addresses, size_t count);

/* Makes a linked copy; `out` has the module's path and build-id.  Returns 0; -ENOTSUP for a kind
 * that can't be linked here; -EBADMSG, -ENOMEM. */
int tally_module_link(const struct tally_object *module, const uint64_t *addresses, size_t count,
		      struct tally_object **out);

#endif

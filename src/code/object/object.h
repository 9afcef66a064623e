/* ELF files: where they are found, what they contain. */
#ifndef TALLY_OBJECT_H
#define TALLY_OBJECT_H

#include "base/error.h"

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_debuginfod;
struct tally_object;

/* An ELF file: its bytes, sections, segments and build-id.  Shared by reference.
 *
 * Opening reads headers only.  The file's bytes are untrusted: every accessor is bounds-checked
 * (libelf does the parsing).  An object is immutable once open; ref/unref are not atomic: one
 * thread owns it.
 */

enum { TALLY_BUILD_ID_MAX = 20 };

struct tally_build_id {
	uint8_t size; /* 0: none */
	uint8_t bytes[TALLY_BUILD_ID_MAX];
};

/* True if equal.  The shorter one may have lost zeros at its end: recordings that don't store the
 * size have 20 bytes. */
bool tally_build_id_equal(const struct tally_build_id *a, const struct tally_build_id *b);

/* Writes lower-case hex with a NUL; "" when there is no build-id. */
void tally_build_id_format(const struct tally_build_id *id, char text[2 * TALLY_BUILD_ID_MAX + 1]);

struct tally_section {
	uint64_t address; /* sh_addr */
	uint64_t size;
	uint64_t file_offset;
	uint32_t type;
	uint32_t link; /* sh_link: the index of its string table */
	/* NULL for SHT_NOBITS; inflated if the section is compressed */
	const uint8_t *bytes;
};

/* Opens an ELF file; `directory_fd` as in openat(2).  Returns 0; -ENOENT, -EACCES …; -ENOEXEC when
 * it is no ELF file. */
int tally_object_open(int directory_fd, const char *path, struct tally_object **out,
		      struct tally_error *err);

/* Opens a file below another root (a container's, /proc/PID/root; --symfs); no symbolic link or
 * ".." leads out of it.  If some path leads to the file from here, it becomes the object's path. */
int tally_object_open_in_root(int root_fd, const char *path, struct tally_object **out,
			      struct tally_error *err);

/* Opens an ELF file from a descriptor, which stays the caller's.  `path` becomes the object's
 * path. */
int tally_object_open_descriptor(int fd, const char *path, struct tally_object **out,
				 struct tally_error *err);

/* Opens a copy in memory: the owner of the file may write it anew. */
int tally_object_copy_descriptor(int fd, const char *path, struct tally_object **out,
				 struct tally_error *err);

/* False if the file must be read as a whole to be opened: its owner could truncate it. */
bool tally_object_is_mappable(int fd, const char *path);

/* Opens a file below another root like tally_object_open_in_root().  Returns a descriptor or
 * -errno. */
int tally_object_descriptor_in_root(int root_fd, const char *path);

/* Gets a path that leads to the descriptor's file from here; false when there is none. */
bool tally_object_path_of(int fd, char path[PATH_MAX]);

/* The file that an object was opened from; all 0 for an image in memory. */
struct tally_object_file {
	uint32_t major, minor;
	uint64_t inode;
	uint64_t generation; /* tells files apart that had the same inode; 0: not known */
	uint64_t size;
	uint64_t written_ns, changed_ns; /* st_mtim, st_ctim: CLOCK_REALTIME */
	/* of an overlay: mappings are recorded with the inode of the layer */
	bool is_layered;
	/* of FUSE: a process, of any user, may say what it likes of owner, size and times */
	bool is_served;
};
const struct tally_object_file *tally_object_file(const struct tally_object *object);

/* Tells a file's content from any other, also from another file that claims its build-id.  The
 * kernel chooses the inode and the time of the change, not the file's writer. */
struct tally_object_identity {
	uint64_t device, inode, generation, size, changed_ns;
};

/* Gets the identity of the file that an object was opened from.  Returns false unless the file
 * belongs to root or this user, and the kernel says so (not a FUSE server), and not everyone may
 * write it; false for an image in memory. */
bool tally_object_identity(const struct tally_object *object, struct tally_object_identity *out);

/* Gives an image in memory the identity of the object that it was made from. */
void tally_object_identify_by(struct tally_object *object, const struct tally_object *from);

/* Reads what identifies an ELF file, without opening it as an object.  Returns 0, -ENOEXEC or
 * -errno.  `id` has size 0 if there is none. */
int tally_object_look(int fd, struct tally_object_file *file, struct tally_build_id *id);

/* True if a loader would map the object's code from `start` to `end`, offsets in the file. */
bool tally_object_has_code_at(const struct tally_object *object, uint64_t start, uint64_t end);

/* Opens an image in memory (the vdso, a test's bytes), which is copied.  `name` becomes its
 * path. */
int tally_object_open_memory(const char *name, const void *bytes, size_t size,
			     struct tally_object **out, struct tally_error *err);

struct tally_object *tally_object_ref(struct tally_object *object);
void tally_object_unref(struct tally_object *object); /* accepts NULL */

const char *tally_object_path(const struct tally_object *object);
const struct tally_build_id *tally_object_build_id(const struct tally_object *object);
uint16_t tally_object_machine(const struct tally_object *object); /* e_machine: EM_X86_64 … */
uint16_t tally_object_type(const struct tally_object *object);    /* e_type: ET_EXEC, ET_DYN … */
bool tally_object_is_64bit(const struct tally_object *object);
/* True if the file's byte order is not this machine's. */
bool tally_object_is_swapped(const struct tally_object *object);

/* Returns the whole file.  It equals the file on disk until a compressed section is loaded (libelf
 * edits its header). */
const uint8_t *tally_object_image(const struct tally_object *object, size_t *size);

/* Returns libelf's handle (<libelf.h>), for libdw and symbol tables. */
struct Elf *tally_object_elf(const struct tally_object *object);

/* Gets a section by name; false when there is none.  `bytes` stays valid as long as the object. */
bool tally_object_section(const struct tally_object *object, const char *name,
			  struct tally_section *out);

/* Gets a section by index (sh_link, st_shndx). */
bool tally_object_section_at(const struct tally_object *object, uint32_t index,
			     struct tally_section *out);

/* The first word of Go's table of functions and lines, by the Go version that began to write it. */
enum {
	TALLY_GO_1_2 = 0xfffffffb,
	TALLY_GO_1_16 = 0xfffffffa,
	TALLY_GO_1_18 = 0xfffffff0,
	TALLY_GO_1_20 = 0xfffffff1,
};

/* Gets Go's table of functions and lines, also from an object without section headers; `size` may
 * reach behind its end.  Returns false when there is none: Go's linker did not make the object. */
bool tally_object_go_table(const struct tally_object *object, struct tally_section *out);

/* A segment that is loaded. */
struct tally_segment {
	uint64_t address, file_offset, file_size, memory_size;
	bool is_executable;
};

/* Returns the loaded segment that holds an address with bytes in the file, or NULL. */
const struct tally_segment *tally_object_segment_at(const struct tally_object *object,
						    uint64_t address);

/* Converts an offset in the file to an address in the object, as in st_value, by the PT_LOAD
 * segments.  Returns false when no segment maps the offset. */
bool tally_object_address_of_offset(const struct tally_object *object, uint64_t file_offset,
				    uint64_t *address);

/* Returns the bytes mapped at an address in the object and sets how many follow there: at most the
 * rest of the segment (of a section, in a linked module, which has no segments). */
const uint8_t *tally_object_bytes_at(const struct tally_object *object, uint64_t address,
				     size_t *available);

/* Reads a build-id from notes (contents of SHT_NOTE or PT_NOTE, /sys/kernel/notes) of either byte
 * order. */
bool tally_build_id_from_notes(const void *notes, size_t size, struct tally_build_id *out);

/* The places of a recording's files other than their own path.
 *
 * A file found by build-id is the recorded one, wherever it lies.  The strings belong to the caller
 * and must outlive the use; several threads may search at once.
 */

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

/* A kernel module (.ko) as it lies in memory.  The file is not linked (ET_REL); this links it as
 * the kernel did.
 *
 * The result is an object like any other, whose symbols and debug information have addresses.  Only
 * 64-bit modules of this machine's byte order.  The result has only symbols on machines whose
 * relocations of debug information are unknown (all except x86-64, arm64, s390x, ppc64).  The
 * file's bytes are untrusted.
 */

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

/* The running kernel's memory through /proc/kcore: an ELF core file whose segments have the
 * kernel's addresses. */

/* Reads `size` bytes at a kernel address.  `path` is /proc/kcore; tests use another 64-bit ELF file
 * of this machine's byte order.  Returns 0; -ENOENT, -EACCES, -EPERM …; -ENXIO when nothing is
 * mapped there; -ENOEXEC when the file is not such an ELF file. */
int tally_kcore_read(const char *path, uint64_t address, void *bytes, size_t size);

/* Tables of an object for the program loader.  They are found without section headers, too. */

/* Gets the dynamic symbol table and its names by way of PT_DYNAMIC.  Returns false when there is
 * none. */
bool tally_object_dynamic_symbols(const struct tally_object *object, struct tally_section *symbols,
				  struct tally_section *strings);

/* Gets the dynamic relocations (Elf64_Rela, Elf32_Rela).  Returns false when there are none. */
bool tally_object_relocations(const struct tally_object *object, struct tally_section *out);

/* Fetches files by build-id from debuginfod servers (debuginfod_find_debuginfo(3)).  Uses
 * libdebuginfod, which is loaded on first use and caches what it fetched (in
 * ~/.cache/debuginfod_client).
 *
 * This uses the network, so call it only when the user asks for it.
 */

/* Called several times a second with the bytes received, and the total (0: unknown).  Return false
 * to give up. */
typedef bool tally_debuginfod_progress(void *context, uint64_t bytes, uint64_t total);

/* `urls`: servers, separated by blanks; NULL: the environment's (DEBUGINFOD_URLS).  Unless the
 * environment sets other limits, a server may take 10 s for 100 KB and two minutes for a file.
 * Returns 0; -ENOPKG without the library; -EDESTADDRREQ without a server; -ENOMEM. */
int tally_debuginfod_open(const char *urls, tally_debuginfod_progress *progress, void *context,
			  struct tally_debuginfod **out, struct tally_error *err);

enum tally_debuginfod_kind { TALLY_DEBUGINFOD_DEBUG, TALLY_DEBUGINFOD_EXECUTABLE };

/* Gets a file from the servers or from libdebuginfod's cache.  Returns 0 (the caller unrefs the
 * object), -ENOENT when no server has it, -EINTR when `progress` gave up, -EFBIG when the file is
 * above the limits (base/input_limits.h; it is noted, and its beginning is removed), or another
 * -errno of the network's.  The process's RLIMIT_FSIZE is lower meanwhile. */
int tally_debuginfod_fetch(struct tally_debuginfod *server, const struct tally_build_id *id,
			   enum tally_debuginfod_kind kind, struct tally_object **out);

void tally_debuginfod_close(struct tally_debuginfod *server);

#endif

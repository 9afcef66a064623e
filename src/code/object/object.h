/* An ELF file: its bytes, sections, segments and build-id.  Shared by reference.
 *
 * Opening reads headers only.  The file's bytes are untrusted: every accessor is bounds-checked
 * (libelf does the parsing).  An object is immutable once open; ref/unref are not atomic: one
 * thread owns it.
 */
#ifndef TALLY_OBJECT_H
#define TALLY_OBJECT_H

#include "base/error.h"

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct tally_object;

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

#endif

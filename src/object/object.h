/* An ELF file: its bytes, sections, segments and build-id.  Shared by reference.
 *
 * Opening reads headers only.  The file's bytes are untrusted: every accessor is bounds-checked
 * (libelf does the parsing).  An object is immutable once open; ref/unref are not atomic: one
 * thread owns it.
 */
#ifndef TALLY_OBJECT_OBJECT_H
#define TALLY_OBJECT_OBJECT_H

#include "base/error.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TALLY_BUILD_ID_MAX = 20 };

struct tally_build_id {
	uint8_t size; /* 0: none */
	uint8_t bytes[TALLY_BUILD_ID_MAX];
};

/* The shorter one may have lost zeros at its end: recordings tell of 20 bytes where they tell no
 * size. */
bool tally_build_id_equal(const struct tally_build_id *a, const struct tally_build_id *b);

/* Lower-case hex with a NUL; "" for none. */
void tally_build_id_format(const struct tally_build_id *id, char text[2 * TALLY_BUILD_ID_MAX + 1]);

struct tally_section {
	uint64_t address; /* sh_addr */
	uint64_t size;
	uint64_t file_offset;
	uint32_t type, flags;
	uint32_t link;        /* sh_link: the index of the string table that belongs to it */
	uint32_t entry_size;  /* sh_entsize */
	/* NULL for SHT_NOBITS; decompressed where the section is compressed */
	const uint8_t *bytes;
};

struct tally_object;

/* Opens an ELF file; `directory_fd` as in openat(2).  -ENOENT, -EACCES …, -ENOEXEC when it is no
 * ELF file. */
int tally_object_open(int directory_fd, const char *path, struct tally_object **out,
		      struct tally_error *err);

/* The same below another root (a container's, /proc/PID/root; --symfs): no symbolic link or ".."
 * leads out of it.  The object's path is then the one by which it can be opened again, where there
 * is one. */
int tally_object_open_in_root(int root_fd, const char *path, struct tally_object **out,
			      struct tally_error *err);

/* An open file, wherever it came from; `path` is what it is called.  The descriptor stays the
 * caller's. */
int tally_object_open_descriptor(int fd, const char *path, struct tally_object **out,
				 struct tally_error *err);

/* An image in memory (the vdso, a test's bytes), copied.  `name` serves as its path. */
int tally_object_open_memory(const char *name, const void *bytes, size_t size,
			     struct tally_object **out, struct tally_error *err);

struct tally_object *tally_object_ref(struct tally_object *object);
void tally_object_unref(struct tally_object *object); /* NULL is fine */

const char *tally_object_path(const struct tally_object *object);
const struct tally_build_id *tally_object_build_id(const struct tally_object *object);
uint16_t tally_object_machine(const struct tally_object *object); /* e_machine: EM_X86_64 … */
uint16_t tally_object_type(const struct tally_object *object);    /* e_type: ET_EXEC, ET_DYN … */
bool tally_object_is_64bit(const struct tally_object *object);
/* of the other byte order than this machine */
bool tally_object_is_swapped(const struct tally_object *object);

/* The file whole; as it lies on the disk until a compressed section was asked for (libelf edits its
 * header). */
const uint8_t *tally_object_image(const struct tally_object *object, size_t *size);

/* libelf's handle, for libdw and symbol tables.  Struct Elf of <libelf.h>. */
struct Elf *tally_object_elf(const struct tally_object *object);

/* The named section; false when there is none.  `bytes` lives as long as the object. */
bool tally_object_section(const struct tally_object *object, const char *name,
			  struct tally_section *out);

/* The section of an index (sh_link, st_shndx). */
bool tally_object_section_at(const struct tally_object *object, uint32_t index,
			     struct tally_section *out);

/* Where the address of a symbol, "address in the object" (st_value), lies for a byte of the file:
 * by PT_LOAD segments.  False when no segment maps the offset. */
bool tally_object_address_of_offset(const struct tally_object *object, uint64_t file_offset,
				    uint64_t *address);

/* The bytes mapped at an address in the object, as many as there are from there (at most one
 * segment's; of a linked module, which has none, one section's). */
const uint8_t *tally_object_bytes_at(const struct tally_object *object, uint64_t address,
				     size_t *available);

/* Reads a build-id from notes (SHT_NOTE/PT_NOTE contents, /sys/kernel/notes), of either byte
 * order. */
bool tally_build_id_from_notes(const void *notes, size_t size, struct tally_build_id *out);

#endif

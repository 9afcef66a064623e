/* ELF files, parsed by libelf over bytes in memory.
 *
 * libelf gets the file's image rather than a descriptor: a session may hold thousands of objects,
 * and each would keep a descriptor open.  The image is mapped, with two exceptions: files that other
 * users can change are copied (base/file_copy.h), and so are memfds, which their process may use
 * again for something else.
 *
 * libelf parses headers, checks sections' ranges and inflates sections.  This file checks segments'
 * ranges against the image on each access.
 */
#include "base/file_copy.h"
#include "base/input_limits.h"
#include "base/reader.h"
#include "object/object.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <zstd.h>

enum { COMPRESSED_ZSTD = 2 }; /* ELFCOMPRESS_ZSTD; libelf has it from 0.189 on */

/* A section that this file inflated; kept as long as the object. */
struct inflated {
	struct inflated *next;
	uint32_t index;
	size_t size;
	uint8_t bytes[];
};

struct inflation {
	struct inflated *sections; /* those that libelf can't inflate */
	uint64_t bytes;            /* of all inflated sections */
};

struct tally_object {
	unsigned references;
	char *path;
	uint8_t *image;
	size_t image_size;
	bool is_mapped; /* released by munmap(2), not free(3) */
	Elf *elf;
	GElf_Ehdr header;
	size_t name_section; /* index of the section with the sections' names */
	struct tally_segment *segments; /* PT_LOAD */
	size_t segment_count;
	struct tally_build_id build_id;
	struct tally_object_file file;
	bool has_identity;
	struct tally_object_identity identity;
	struct inflation *inflation; /* a pointer, so that const objects can add to it */
};

/* Returns a range of the file, or NULL when it isn't wholly inside. */
static const uint8_t *range(const struct tally_object *object, uint64_t offset, uint64_t size)
{
	if (offset > object->image_size || size > object->image_size - offset)
		return NULL;
	return object->image + offset;
}

/* Each lookup of an address tries them all; linkers make some ten. */
enum { SEGMENTS_MAX = 256 };

static int read_segments(struct tally_object *object)
{
	size_t count;
	if (elf_getphdrnum(object->elf, &count) < 0 || count == 0)
		return 0;
	/* The file's count is untrusted: limit it by the file's size. */
	size_t possible = object->image_size / sizeof(Elf32_Phdr);
	if (count > possible)
		count = possible;
	object->segments = calloc(count + 1, sizeof(*object->segments));
	if (!object->segments)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(object->elf, (int)i, &header))
			break;
		if (header.p_type != PT_LOAD)
			continue;
		if (object->segment_count == SEGMENTS_MAX)
			break;
		object->segments[object->segment_count++] = (struct tally_segment){
			.address = header.p_vaddr,
			.file_offset = header.p_offset,
			.file_size = header.p_filesz,
			.memory_size = header.p_memsz,
			.is_executable = header.p_flags & PF_X,
		};
	}
	return 0;
}

/* Looks in sections first: a separate debug file keeps segments whose offsets no longer fit. */
static void read_build_id(struct tally_object *object)
{
	Elf_Scn *scn = NULL;
	while ((scn = elf_nextscn(object->elf, scn))) {
		GElf_Shdr header;
		if (!gelf_getshdr(scn, &header) || header.sh_type != SHT_NOTE)
			continue;
		const uint8_t *notes = range(object, header.sh_offset, header.sh_size);
		if (notes && tally_build_id_from_notes(notes, header.sh_size, &object->build_id))
			return;
	}
	size_t count;
	if (elf_getphdrnum(object->elf, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(object->elf, (int)i, &header))
			return;
		if (header.p_type != PT_NOTE)
			continue;
		const uint8_t *notes = range(object, header.p_offset, header.p_filesz);
		if (notes && tally_build_id_from_notes(notes, header.p_filesz, &object->build_id))
			return;
	}
}

/* Makes an object of the image and takes ownership of it, even on failure. */
static int open_image(const char *path, uint8_t *image, size_t size, bool is_mapped,
		      struct tally_object **out, struct tally_error *err)
{
	struct tally_object *object = calloc(1, sizeof(*object));
	if (!object) {
		if (is_mapped)
			munmap(image, size);
		else
			free(image);
		return tally_error_set(err, -ENOMEM, "out of memory while opening %s", path);
	}
	*object = (struct tally_object){
		.references = 1,
		.image = image,
		.image_size = size,
		.is_mapped = is_mapped,
		.path = strdup(path),
		.inflation = calloc(1, sizeof(*object->inflation)),
	};
	int rc = -ENOMEM;
	if (!object->path || !object->inflation)
		goto fail;
	elf_version(EV_CURRENT);
	errno = 0; /* tells malloc's failure; libelf's own error codes are not public */
	object->elf = elf_memory((char *)image, size);
	if (!object->elf && errno == ENOMEM)
		goto fail;
	rc = -ENOEXEC;
	if (!object->elf || elf_kind(object->elf) != ELF_K_ELF ||
	    !gelf_getehdr(object->elf, &object->header))
		goto fail;
	rc = read_segments(object);
	if (rc)
		goto fail;
	if (elf_getshdrstrndx(object->elf, &object->name_section) < 0)
		object->name_section = SHN_UNDEF;
	read_build_id(object);
	*out = object;
	return 0;
fail:
	tally_object_unref(object);
	if (rc == -ENOEXEC)
		return tally_error_set(err, rc, "%s is not an ELF file", path);
	return tally_error_set(err, rc, "can't open %s: %s", path, tally_errno_text(rc));
}

static int copy_file(int fd, const char *path, size_t size, uint8_t **out)
{
	uint64_t data, most = tally_input_limit(TALLY_INPUT_OBJECT);
	int rc = -EFBIG;
	if (size <= most)
		rc = tally_file_copy(fd, size, most, out, &data);
	if (rc == -EFBIG)
		tally_input_note(TALLY_INPUT_OBJECT, path);
	if (rc == -ENODATA)
		return -ENOEXEC; /* the file shrank while we read it */
	return rc;
}

static bool is_mappable(const struct stat *status, const char *path)
{
	return tally_file_is_ours(status) && strncmp(path, "/memfd:", 7) != 0;
}

static uint64_t time_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * UINT64_C(1000000000) + (uint64_t)time->tv_nsec;
}

static struct tally_object_file file_of(int fd, const struct stat *status)
{
	const unsigned overlay = 0x794c7630, fuse = 0x65735546; /* linux/magic.h */
	unsigned generation = 0;
	struct statfs system = { 0 };
	int unknown = fstatfs(fd, &system);
	if (ioctl(fd, FS_IOC_GETVERSION, &generation) < 0)
		generation = 0;
	return (struct tally_object_file){
		.major = major(status->st_dev),
		.minor = minor(status->st_dev),
		.inode = status->st_ino,
		.generation = generation,
		.size = (uint64_t)status->st_size,
		.written_ns = time_ns(&status->st_mtim),
		.changed_ns = time_ns(&status->st_ctim),
		.is_layered = (unsigned)system.f_type == overlay,
		.is_served = unknown || (unsigned)system.f_type == fuse,
	};
}

int tally_object_look(int fd, struct tally_object_file *file, struct tally_build_id *id)
{
	enum { NOTES_MAX = 1 << 16 };
	struct stat status;
	size_t count;
	*id = (struct tally_build_id){ 0 };
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size < EI_NIDENT)
		return -ENOEXEC;
	*file = file_of(fd, &status);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	bool is_elf = elf && elf_kind(elf) == ELF_K_ELF;
	if (!is_elf || elf_getphdrnum(elf, &count) < 0)
		count = 0;
	for (size_t i = 0; !id->size && i < count && i < SEGMENTS_MAX; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_NOTE ||
		    header.p_filesz > NOTES_MAX || header.p_offset > INT64_MAX)
			continue;
		const Elf_Data *notes = elf_getdata_rawchunk(elf, (int64_t)header.p_offset,
							     header.p_filesz, ELF_T_BYTE);
		if (notes)
			tally_build_id_from_notes(notes->d_buf, notes->d_size, id);
	}
	elf_end(elf);
	if (!is_elf)
		return -ENOEXEC;
	return 0;
}

bool tally_object_is_mappable(int fd, const char *path)
{
	struct stat status;
	return !fstat(fd, &status) && is_mappable(&status, path);
}

static void identify(struct tally_object *object, bool is_own)
{
	const struct tally_object_file *file = &object->file;
	object->has_identity = is_own && !file->is_served;
	if (object->has_identity)
		object->identity = (struct tally_object_identity){
			.device = (uint64_t)file->major << 32 | file->minor,
			.inode = file->inode,
			.generation = file->generation,
			.size = file->size,
			.changed_ns = file->changed_ns,
		};
}

static int open_file(int fd, const char *path, bool copies, struct tally_object **out,
		     struct tally_error *err)
{
	struct stat status;
	if (fstat(fd, &status) < 0)
		return tally_error_set(err, -errno, "can't open %s: %s", path,
				       tally_errno_text(-errno));
	if (!S_ISREG(status.st_mode) || status.st_size < EI_NIDENT)
		return tally_error_set(err, -ENOEXEC, "%s is not an ELF file", path);

	size_t size = (size_t)status.st_size;
	bool is_mapped = !copies && is_mappable(&status, path);
	uint8_t *image = NULL;
	int rc = 0;
	if (is_mapped) {
		/* Writable, because libelf changes headers in place when it inflates a section. */
		image = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd,
			     0);
		if (image == MAP_FAILED)
			rc = -errno;
	} else {
		char magic[SELFMAG];
		if (pread(fd, magic, sizeof(magic), 0) != sizeof(magic) ||
		    memcmp(magic, ELFMAG, SELFMAG) != 0)
			return tally_error_set(err, -ENOEXEC, "%s is not an ELF file", path);
		rc = copy_file(fd, path, size, &image);
	}
	if (rc < 0)
		return tally_error_set(err, rc, "can't read %s: %s", path, tally_errno_text(rc));
	rc = open_image(path, image, size, true, out, err); /* a copy is a mapping, too */
	if (rc)
		return rc;
	(*out)->file = file_of(fd, &status);
	identify(*out, is_mappable(&status, path) && !(status.st_mode & S_IWOTH));
	return 0;
}

int tally_object_open_descriptor(int fd, const char *path, struct tally_object **out,
				 struct tally_error *err)
{
	return open_file(fd, path, false, out, err);
}

int tally_object_copy_descriptor(int fd, const char *path, struct tally_object **out,
				 struct tally_error *err)
{
	return open_file(fd, path, true, out, err);
}

static int open_failed(const char *path, int rc, struct tally_error *err)
{
	tally_error_set(err, rc, "can't open %s: %s", path, tally_errno_text(rc));
	if (rc == -EACCES)
		tally_error_hint(err, "make the file readable, or run as the user that owns it");
	return rc;
}

/* O_NONBLOCK: a pipe may have replaced the mapped file. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

int tally_object_open(int directory_fd, const char *path, struct tally_object **out,
		      struct tally_error *err)
{
	int fd = openat(directory_fd, path, OPEN_FLAGS);
	if (fd < 0)
		return open_failed(path, -errno, err);
	int rc = tally_object_open_descriptor(fd, path, out, err);
	close(fd);
	return rc;
}

bool tally_object_path_of(int fd, char path[PATH_MAX])
{
	char link[32];
	struct stat there, seen;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, PATH_MAX - 1);
	if (length <= 0)
		return false;
	path[length] = '\0';
	return !fstat(fd, &there) && !stat(path, &seen) && there.st_dev == seen.st_dev &&
	       there.st_ino == seen.st_ino;
}

int tally_object_descriptor_in_root(int root_fd, const char *path)
{
	struct open_how how = { .flags = OPEN_FLAGS,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	return fd;
}

int tally_object_open_in_root(int root_fd, const char *path, struct tally_object **out,
			      struct tally_error *err)
{
	int fd = tally_object_descriptor_in_root(root_fd, path);
	if (fd < 0)
		return open_failed(path, fd, err);
	char again[PATH_MAX];
	bool can_again = tally_object_path_of(fd, again);
	int rc = tally_object_open_descriptor(fd, can_again ? again : path, out, err);
	close(fd);
	return rc;
}

int tally_object_open_memory(const char *name, const void *bytes, size_t size,
			     struct tally_object **out, struct tally_error *err)
{
	if (size < EI_NIDENT)
		return tally_error_set(err, -ENOEXEC, "%s is not an ELF file", name);
	uint8_t *image = malloc(size);
	if (!image)
		return tally_error_set(err, -ENOMEM, "out of memory while opening %s", name);
	memcpy(image, bytes, size);
	return open_image(name, image, size, false, out, err);
}

struct tally_object *tally_object_ref(struct tally_object *object)
{
	object->references++;
	return object;
}

void tally_object_unref(struct tally_object *object)
{
	if (!object || --object->references > 0)
		return;
	elf_end(object->elf);
	while (object->inflation && object->inflation->sections) {
		struct inflated *first = object->inflation->sections;
		object->inflation->sections = first->next;
		free(first);
	}
	free(object->inflation);
	free(object->segments);
	if (object->is_mapped)
		munmap(object->image, object->image_size);
	else
		free(object->image);
	free(object->path);
	free(object);
}

const char *tally_object_path(const struct tally_object *object)
{
	return object->path;
}

const struct tally_build_id *tally_object_build_id(const struct tally_object *object)
{
	return &object->build_id;
}

const struct tally_object_file *tally_object_file(const struct tally_object *object)
{
	return &object->file;
}

bool tally_object_identity(const struct tally_object *object, struct tally_object_identity *out)
{
	*out = object->identity;
	return object->has_identity;
}

void tally_object_identify_by(struct tally_object *object, const struct tally_object *from)
{
	object->identity = from->identity;
	object->has_identity = from->has_identity;
}

/* Loaders map whole pages.  glibc before 2.26 and the kernel map a file's first segment as long as
 * all segments together, then the others over it. */
bool tally_object_has_code_at(const struct tally_object *object, uint64_t start, uint64_t end)
{
	static const uint64_t pages[] = { 4096, 16384, 65536 };
	uint64_t first = UINT64_MAX, last = 0, span = 0;
	for (size_t i = 0; i < object->segment_count; i++) {
		const struct tally_segment *segment = &object->segments[i],
					   *lowest = object->segments;
		uint64_t memory_end = segment->address - lowest->address + lowest->file_offset +
				      segment->memory_size,
			 file_end = segment->file_offset + segment->file_size;
		if (memory_end > span)
			span = memory_end;
		if (!segment->is_executable || !segment->file_size)
			continue;
		if (segment->file_offset < first)
			first = segment->file_offset;
		if (file_end > last)
			last = file_end;
	}
	for (size_t i = 0; last && i < sizeof(pages) / sizeof(*pages); i++) {
		uint64_t rest = pages[i] - 1;
		if (start == (first & ~rest) &&
		    (end == ((last + rest) & ~rest) || end == ((span + rest) & ~rest)))
			return true;
	}
	return false;
}

uint16_t tally_object_machine(const struct tally_object *object)
{
	return object->header.e_machine;
}

uint16_t tally_object_type(const struct tally_object *object)
{
	return object->header.e_type;
}

bool tally_object_is_64bit(const struct tally_object *object)
{
	return object->header.e_ident[EI_CLASS] == ELFCLASS64;
}

bool tally_object_is_swapped(const struct tally_object *object)
{
	return object->header.e_ident[EI_DATA] !=
	       (__BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB);
}

const uint8_t *tally_object_image(const struct tally_object *object, size_t *size)
{
	*size = object->image_size;
	return object->image;
}

struct Elf *tally_object_elf(const struct tally_object *object)
{
	return object->elf;
}

/* Counts bytes that are about to be inflated.  Returns false if the object's sections would then be
 * larger than those of honest objects. */
static bool may_inflate(const struct tally_object *object, uint64_t bytes)
{
	struct inflation *inflation = object->inflation;
	uint64_t most = tally_input_limit_unpacked(TALLY_INPUT_OBJECT_SECTIONS,
						   object->image_size);
	if (inflation->bytes > most || bytes > most - inflation->bytes) {
		tally_input_note(TALLY_INPUT_OBJECT_SECTIONS, object->path);
		return false;
	}
	inflation->bytes += bytes;
	return true;
}

/* Inflates a section compressed by zstd, which libelf 0.188 can't. */
static const struct inflated *inflate_zstd(const struct tally_object *object, Elf_Scn *scn,
					   const GElf_Chdr *header)
{
	uint32_t index = (uint32_t)elf_ndxscn(scn);
	for (const struct inflated *i = object->inflation->sections; i; i = i->next)
		if (i->index == index)
			return i;
	size_t header_size = sizeof(Elf32_Chdr);
	if (tally_object_is_64bit(object))
		header_size = sizeof(Elf64_Chdr);
	const Elf_Data *data = elf_rawdata(scn, NULL);
	if (!data || !data->d_buf || data->d_size < header_size)
		return NULL;
	const uint8_t *frame = (const uint8_t *)data->d_buf + header_size;
	size_t frame_size = data->d_size - header_size;
	/* Don't allocate by the section header's size alone: the zstd frame must agree. */
	if (ZSTD_getFrameContentSize(frame, frame_size) != header->ch_size ||
	    !may_inflate(object, header->ch_size))
		return NULL;
	struct inflated *inflated = malloc(sizeof(*inflated) + header->ch_size);
	size_t size = 0;
	if (inflated)
		size = ZSTD_decompress(inflated->bytes, header->ch_size, frame, frame_size);
	if (!inflated || size != header->ch_size) {
		free(inflated);
		object->inflation->bytes -= header->ch_size;
		return NULL;
	}
	inflated->index = index;
	inflated->size = size;
	inflated->next = object->inflation->sections;
	object->inflation->sections = inflated;
	return inflated;
}

/* Lets libelf inflate a section. */
static bool inflate(const struct tally_object *object, Elf_Scn *scn, bool is_gnu)
{
	enum { MARK_BYTES = 4, GNU_HEADER_BYTES = 12 };
	GElf_Chdr header;
	uint64_t size;
	if (is_gnu) {
		const Elf_Data *data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf || data->d_size < GNU_HEADER_BYTES ||
		    memcmp(data->d_buf, "ZLIB", MARK_BYTES) != 0)
			return true;
		memcpy(&size, (const char *)data->d_buf + MARK_BYTES, sizeof(size));
		size = be64toh(size);
	} else {
		if (!gelf_getchdr(scn, &header))
			return false;
		size = header.ch_size;
	}
	if (!may_inflate(object, size))
		return false;
	if ((is_gnu ? elf_compress_gnu(scn, 0, 0) : elf_compress(scn, 0, 0)) >= 0)
		return true;
	object->inflation->bytes -= size;
	return false;
}

/* `is_gnu`: the old form of compression, recognised only by the section's name. */
static bool load_section(const struct tally_object *object, Elf_Scn *scn, bool is_gnu,
			 struct tally_section *out)
{
	GElf_Shdr header;
	if (!gelf_getshdr(scn, &header))
		return false;
	*out = (struct tally_section){
		.address = header.sh_addr,
		.size = header.sh_size,
		.file_offset = header.sh_offset,
		.type = header.sh_type,
		.link = header.sh_link,
	};
	if (header.sh_type == SHT_NOBITS)
		return true;
	GElf_Chdr compression;
	if (header.sh_flags & SHF_COMPRESSED && gelf_getchdr(scn, &compression) &&
	    compression.ch_type == COMPRESSED_ZSTD) {
		const struct inflated *inflated = inflate_zstd(object, scn, &compression);
		if (!inflated)
			return false;
		out->bytes = inflated->bytes;
		out->size = inflated->size;
		return true;
	}
	if ((header.sh_flags & SHF_COMPRESSED || is_gnu) &&
	    !inflate(object, scn, is_gnu))
		return false;
	const Elf_Data *data = elf_rawdata(scn, NULL);
	if (!data || (data->d_size > 0 && !data->d_buf))
		return false;
	out->bytes = data->d_size > 0 ? data->d_buf : object->image;
	out->size = data->d_size;
	return true;
}

static Elf_Scn *section_named(const struct tally_object *object, const char *name)
{
	Elf_Scn *scn = NULL;
	while ((scn = elf_nextscn(object->elf, scn))) {
		GElf_Shdr header;
		if (!gelf_getshdr(scn, &header))
			continue;
		const char *its_name = elf_strptr(object->elf, object->name_section,
						  header.sh_name);
		if (its_name && strcmp(its_name, name) == 0)
			return scn;
	}
	return NULL;
}

bool tally_object_section(const struct tally_object *object, const char *name,
			  struct tally_section *out)
{
	if (object->name_section == SHN_UNDEF)
		return false;
	Elf_Scn *scn = section_named(object, name);
	if (scn)
		return load_section(object, scn, false, out);
	if (strncmp(name, ".debug_", 7) != 0)
		return false;
	char old_name[64] = ".z";
	strncat(old_name, name + 1, sizeof(old_name) - sizeof(".z"));
	scn = section_named(object, old_name);
	return scn && load_section(object, scn, true, out);
}

bool tally_object_section_at(const struct tally_object *object, uint32_t index,
			     struct tally_section *out)
{
	Elf_Scn *scn = NULL;
	if (index != SHN_UNDEF)
		scn = elf_getscn(object->elf, index);
	return scn && load_section(object, scn, false, out);
}

static bool segment_holds(const struct tally_segment *segment, uint64_t file_offset,
			  uint64_t page_size)
{
	uint64_t start = segment->file_offset & ~(page_size - 1);
	uint64_t end;
	if (__builtin_add_overflow(segment->file_offset, segment->file_size, &end))
		return false;
	end = (end + page_size - 1) & ~(page_size - 1);
	return file_offset >= start && file_offset < end;
}

bool tally_object_address_of_offset(const struct tally_object *object, uint64_t file_offset,
				    uint64_t *address)
{
	/* Segments are mapped in whole pages, so a byte may also be mapped as part of a neighbour's
	 * page.  Try its own segment first, and executable segments before others. */
	static const uint64_t PAGE_SIZES[] = { 1, 4096, 65536 };
	for (size_t size = 0; size < sizeof(PAGE_SIZES) / sizeof(PAGE_SIZES[0]); size++)
		for (int want = 1; want >= 0; want--)
			for (size_t i = 0; i < object->segment_count; i++) {
				const struct tally_segment *segment = &object->segments[i];
				if (segment->is_executable != want ||
				    !segment_holds(segment, file_offset, PAGE_SIZES[size]))
					continue;
				*address = segment->address - segment->file_offset + file_offset;
				return true;
			}
	return false;
}

/* For objects without segments: a linked module. */
static const uint8_t *section_bytes_at(const struct tally_object *object, uint64_t address,
				       size_t *available)
{
	size_t count = 0;
	if (elf_getshdrnum(object->elf, &count) < 0)
		return NULL;
	for (uint32_t i = 1; i < count; i++) {
		GElf_Shdr header;
		Elf_Scn *scn = elf_getscn(object->elf, i);
		struct tally_section section;
		if (!scn || !gelf_getshdr(scn, &header) || !(header.sh_flags & SHF_ALLOC) ||
		    !header.sh_addr || header.sh_type == SHT_NOBITS || address < header.sh_addr ||
		    address - header.sh_addr >= header.sh_size)
			continue;
		if (!tally_object_section_at(object, i, &section) || !section.bytes ||
		    address - header.sh_addr >= section.size)
			return NULL;
		*available = section.size - (size_t)(address - header.sh_addr);
		return section.bytes + (address - header.sh_addr);
	}
	return NULL;
}

const struct tally_segment *tally_object_segment_at(const struct tally_object *object,
						    uint64_t address)
{
	for (size_t i = 0; i < object->segment_count; i++) {
		const struct tally_segment *segment = &object->segments[i];
		uint64_t inside = address - segment->address, offset;
		if (address >= segment->address && inside < segment->file_size &&
		    !__builtin_add_overflow(segment->file_offset, inside, &offset) &&
		    offset < object->image_size)
			return segment;
	}
	return NULL;
}

const uint8_t *tally_object_bytes_at(const struct tally_object *object, uint64_t address,
				     size_t *available)
{
	*available = 0;
	if (!object->segment_count)
		return section_bytes_at(object, address, available);
	const struct tally_segment *segment = tally_object_segment_at(object, address);
	if (!segment)
		return NULL;
	uint64_t inside = address - segment->address, offset = segment->file_offset + inside;
	uint64_t left = segment->file_size - inside, in_file = object->image_size - offset;
	*available = left < in_file ? left : in_file;
	return object->image + offset;
}

bool tally_build_id_equal(const struct tally_build_id *a, const struct tally_build_id *b)
{
	const struct tally_build_id *longer = b, *shorter = a;
	if (a->size > b->size) {
		longer = a;
		shorter = b;
	}
	if (!shorter->size)
		return !longer->size;
	for (size_t i = shorter->size; i < longer->size; i++)
		if (longer->bytes[i])
			return false;
	return memcmp(a->bytes, b->bytes, shorter->size) == 0;
}

void tally_build_id_format(const struct tally_build_id *id, char text[2 * TALLY_BUILD_ID_MAX + 1])
{
	static const char DIGITS[] = "0123456789abcdef";
	for (size_t i = 0; i < id->size; i++) {
		*text++ = DIGITS[id->bytes[i] >> 4];
		*text++ = DIGITS[id->bytes[i] & 15];
	}
	*text = '\0';
}

/* Skips to the next multiple of 4.  The last note of a section may lack its padding. */
static void align(struct tally_reader *reader)
{
	size_t padding = -tally_reader_offset(reader) & 3;
	size_t left = tally_reader_left(reader);
	if (padding > left)
		padding = left;
	tally_reader_skip(reader, padding);
}

static bool find_build_id(const void *notes, size_t size, bool swap, struct tally_build_id *out)
{
	struct tally_reader reader;
	tally_reader_init(&reader, notes, size, swap);
	while (tally_reader_left(&reader) >= sizeof(Elf64_Nhdr)) {
		uint32_t name_size = tally_reader_u32(&reader);
		uint32_t value_size = tally_reader_u32(&reader);
		uint32_t type = tally_reader_u32(&reader);
		const char *name = tally_reader_bytes(&reader, name_size);
		align(&reader);
		const uint8_t *value = tally_reader_bytes(&reader, value_size);
		align(&reader);
		if (reader.failed)
			return false;
		if (type == NT_GNU_BUILD_ID && name_size == sizeof("GNU") &&
		    memcmp(name, "GNU", sizeof("GNU")) == 0 && value_size > 0 &&
		    value_size <= TALLY_BUILD_ID_MAX) {
			*out = (struct tally_build_id){ .size = (uint8_t)value_size };
			memcpy(out->bytes, value, value_size);
			return true;
		}
	}
	return false;
}

bool tally_build_id_from_notes(const void *notes, size_t size, struct tally_build_id *out)
{
	*out = (struct tally_build_id){ 0 };
	/* Read in the wrong byte order, the first name would be 64 MiB long, so the two can't be
	 * confused. */
	return find_build_id(notes, size, false, out) || find_build_id(notes, size, true, out);
}

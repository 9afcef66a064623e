/* Follows the mappings of one ELF file as long as they adjoin.  An executable mapping that begins
 * where they end, and is not of the file, is a copy if the file has code for all of its
 * addresses. */
#include "recorder/recorder_image.h"

#include "object/object.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool is_of_image(const struct tally_recorder_image *image, const struct tally_proc_map *map)
{
	return map->inode == image->inode && map->major == image->major &&
	       map->minor == image->minor;
}

/* Opens the image's file below the process's root.  Returns NULL if it is another file by now. */
static struct tally_object *open_image(const struct tally_recorder_image *image, pid_t pid)
{
	char path[64 + TALLY_PROC_PATH_MAX];
	struct tally_object *object;
	struct stat file;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, image->path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool is_it = fd >= 0 && !fstat(fd, &file) && file.st_ino == image->inode &&
		     major(file.st_dev) == image->major && minor(file.st_dev) == image->minor;
	if (!is_it || tally_object_open_descriptor(fd, image->path, &object, NULL) < 0)
		object = NULL;
	if (fd >= 0)
		close(fd);
	return object;
}

/* Sets the file offset of the code that the ELF file has at a mapping.  Returns false if all of the
 * mapping is not code. */
static bool find_code(const struct tally_object *object, uint64_t start, uint64_t size,
		      uint64_t *offset)
{
	const uint64_t page = 4096;
	/* A segment need not begin at the beginning of its first page. */
	const struct tally_segment *segment = tally_object_segment_at(object, start + page - 1);
	if (!segment)
		segment = tally_object_segment_at(object, start);
	if (!segment || !segment->is_executable || start + page <= segment->address ||
	    start + size > ((segment->address + segment->file_size + page - 1) & ~(page - 1)))
		return false;
	*offset = start - segment->address + segment->file_offset;
	return true;
}

static bool is_copy(const struct tally_recorder_image *image, pid_t pid,
		    const struct tally_proc_map *map, uint64_t *offset)
{
	uint64_t first;
	struct tally_object *object = open_image(image, pid);
	bool found = object && tally_object_address_of_offset(object, 0, &first) &&
		     find_code(object, first + (map->start - image->start), map->end - map->start,
			       offset);
	tally_object_unref(object);
	return found;
}

bool tally_recorder_image_add_map(struct tally_recorder_image *image, pid_t pid,
				  const struct tally_proc_map *map, uint64_t *offset)
{
	bool is_its = image->end && is_of_image(image, map);
	if (image->end == map->start && !is_its && map->protection & PROT_EXEC &&
	    is_copy(image, pid, map, offset)) {
		image->end = map->end;
		return true;
	}
	if (is_its && map->offset) {
		image->end = map->end;
	} else if (map->path[0] == '/' && !map->offset && map->inode) {
		image->start = map->start;
		image->end = map->end;
		image->inode = map->inode;
		image->major = map->major;
		image->minor = map->minor;
		snprintf(image->path, sizeof(image->path), "%s", map->path);
	} else {
		image->end = 0;
	}
	return false;
}

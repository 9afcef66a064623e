/* Gives the records of mappings their build-ids.
 *
 * The kernel could do this (attr.build_id, Linux 5.12).  But while any event has that bit, the
 * kernel marks the records of all events of the machine as if they had a build-id
 * (perf_event_mmap_output() does not restore the header), and perf 6.1 crashes on them.  So a
 * recorder would spoil the recordings of others.  It also reads notes on a file's first page only.
 *
 * So the recorder reads the build-id of each file once, when it sees the first mapping, and writes
 * it into the records.  Device, inode and generation identify the file until then.  A file that is
 * written anew keeps these, so its size and time are compared as well.
 */
#include "recorder/recorder_build_ids.h"

#include "base/vector.h"
#include "task/task.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { FILES_MAX = 65536, TRIES_MAX = 16 };

static bool is_of(const struct tally_recorder_build_id *known, const struct tally_record_mmap *mmap)
{
	return known->inode == mmap->inode && known->major == mmap->major &&
	       known->minor == mmap->minor && known->inode_generation == mmap->inode_generation;
}

/* Returns the file's entry and adds it if it is new; NULL without memory. */
static struct tally_recorder_build_id *entry_of(struct tally_recorder_build_ids *ids,
						const struct tally_record_mmap *mmap, bool *added)
{
	const struct tally_recorder_build_id new = { .major = mmap->major,
						     .minor = mmap->minor,
						     .inode = mmap->inode,
						     .inode_generation = mmap->inode_generation };
	uint64_t key = tally_hash64(mmap->inode) ^ mmap->inode_generation ^
		       tally_hash64((uint64_t)mmap->major << 32 | mmap->minor);
	if (ids->files.count >= FILES_MAX)
		tally_recorder_build_ids_release(ids);
	for (;; key++) {
		uint64_t *slot = tally_map_put(&ids->index, key, added);
		if (!slot)
			return NULL;
		if (*added) {
			*slot = ids->files.count;
			if (tally_vector_push(&ids->files, new) < 0) {
				tally_map_remove(&ids->index, key);
				return NULL;
			}
		}
		if (is_of(&ids->files.items[*slot], mmap))
			return &ids->files.items[*slot];
	}
}

static bool is_written_anew(const struct tally_recorder_build_id *known, const char *path)
{
	struct stat now;
	if (stat(path, &now) < 0 || now.st_ino != known->inode ||
	    now.st_dev != makedev(known->major, known->minor))
		return false;
	return (uint64_t)now.st_size != known->size ||
	       (uint64_t)now.st_mtim.tv_sec * UINT64_C(1000000000) +
			       (uint64_t)now.st_mtim.tv_nsec !=
		       known->written_ns;
}

/* Reads the file's build-id.  A file that can't be found now may be found for another process. */
static void read_id(const struct tally_tasks *tasks, const struct tally_record_mmap *mmap,
		    struct tally_recorder_build_id *out)
{
	const struct tally_mapped_file file = {
		.major = mmap->major,
		.minor = mmap->minor,
		.inode = mmap->inode,
		.inode_generation = mmap->inode_generation,
		.code_start = mmap->file_offset,
		.code_end = mmap->file_offset + mmap->length,
		.seen = { mmap->pid, mmap->start, mmap->start + mmap->length, 0 },
	};
	struct tally_live_file found;
	struct tally_object_file status;
	out->id = (struct tally_build_id){ 0 };
	if (!tally_live_find(tasks, &file, mmap->filename, &found))
		return;
	if (!tally_object_look(found.fd, &status, &out->id)) {
		out->size = status.size;
		out->written_ns = status.written_ns;
	}
	tally_live_file_release(&found);
}

/* True if the file's build-id must be read: at first, and when the file was written anew. */
static bool must_read(struct tally_recorder_build_id *known, const char *path)
{
	if (known->size)
		return is_written_anew(known, path);
	return known->tries++ < TRIES_MAX;
}

bool tally_recorder_build_id(struct tally_recorder_build_ids *ids, const struct tally_tasks *tasks,
			     const struct tally_record_mmap *mmap, struct tally_build_id *id)
{
	bool added;
	if (!mmap->has_inode || !mmap->inode || !(mmap->protection & PROT_EXEC) ||
	    mmap->filename[0] != '/')
		return false;
	struct tally_recorder_build_id *known = entry_of(ids, mmap, &added);
	if (!known)
		return false;
	if (must_read(known, mmap->filename))
		read_id(tasks, mmap, known);
	*id = known->id;
	return id->size;
}

void tally_recorder_put_build_id(void *record, const struct tally_build_id *id)
{
	enum { AT = 40 }; /* behind header, pid, tid, address, length and offset */
	struct tally_record_header header;
	uint8_t bytes[4 + TALLY_BUILD_ID_MAX] = { id->size };
	memcpy(&header, record, sizeof(header));
	header.misc |= TALLY_MISC_MMAP_BUILD_ID;
	memcpy(record, &header, sizeof(header));
	memcpy(bytes + 4, id->bytes, id->size);
	memcpy((uint8_t *)record + AT, bytes, sizeof(bytes));
}

void tally_recorder_build_ids_release(struct tally_recorder_build_ids *ids)
{
	tally_vector_release(&ids->files);
	tally_map_release(&ids->index);
	*ids = (struct tally_recorder_build_ids){ 0 };
}

/* Compares the build-id if the record has one, otherwise inodes and their generations.  Without a
 * build-id, the file's times and the place of its code must fit, too. */
#include "task/task.h"

const char *tally_file_difference(enum tally_file_identity identity)
{
	switch (identity) {
	case TALLY_FILE_OTHER_BUILD: return "has another build-id";
	case TALLY_FILE_OTHER_INODE: return "has another inode";
	case TALLY_FILE_OTHER_CODE: return "has its code elsewhere";
	case TALLY_FILE_WRITTEN_LATER: return "was written later";
	case TALLY_FILE_SAME:
	case TALLY_FILE_UNPROVEN: break;
	}
	return "is the same";
}

static bool has_build_id(const struct tally_tasks *tasks, const struct tally_mapped_file *mapped)
{
	return mapped->build_id.size && !tally_tasks_is_ambiguous(tasks, mapped);
}

enum tally_file_identity tally_file_identify(const struct tally_tasks *tasks,
					     const struct tally_mapped_file *mapped,
					     const struct tally_object_file *found,
					     const struct tally_build_id *id)
{
	if (has_build_id(tasks, mapped)) {
		if (tally_build_id_equal(&mapped->build_id, id))
			return TALLY_FILE_SAME;
		return TALLY_FILE_OTHER_BUILD;
	}
	if (!mapped->inode || !found->inode)
		return TALLY_FILE_UNPROVEN;
	bool is_same_device = mapped->major == found->major && mapped->minor == found->minor;
	if (mapped->inode != found->inode) {
		if (is_same_device || !found->is_layered)
			return TALLY_FILE_OTHER_INODE;
		return TALLY_FILE_UNPROVEN;
	}
	if (mapped->inode_generation && found->generation &&
	    (uint32_t)mapped->inode_generation != (uint32_t)found->generation)
		return TALLY_FILE_OTHER_INODE;
	if (is_same_device)
		return TALLY_FILE_SAME;
	return TALLY_FILE_UNPROVEN;
}

/* True if a time of a file is later than the mapping.  File systems take times from a clock that
 * advances with the tick, so equal times of two files don't tell which is older. */
static bool is_later(uint64_t time_ns, const struct tally_mapped_file *mapped,
		     const struct tally_file_times *times)
{
	if (!times->until_ns)
		return false;
	if (mapped->since_ns && times->wall_offset_ns)
		return time_ns > mapped->since_ns + times->wall_offset_ns;
	return time_ns >= times->until_ns;
}

enum tally_file_identity tally_file_believe(const struct tally_tasks *tasks,
					    const struct tally_mapped_file *mapped,
					    const struct tally_object *found,
					    const struct tally_file_times *times,
					    bool is_vouched_for)
{
	static const struct tally_object_file unknown;
	const struct tally_object_file *file = &unknown;
	if (!is_vouched_for)
		file = tally_object_file(found);
	enum tally_file_identity identity = tally_file_identify(tasks, mapped, file,
								tally_object_build_id(found));
	if (has_build_id(tasks, mapped) ||
	    (identity != TALLY_FILE_SAME && identity != TALLY_FILE_UNPROVEN))
		return identity;
	if (is_later(file->written_ns, mapped, times))
		return TALLY_FILE_WRITTEN_LATER;
	/* A file may be copied over with the time of the copied one.  But links, names and
	 * permissions change this time as well: perf links the files that it recorded. */
	bool is_certain = identity == TALLY_FILE_SAME && !is_later(file->changed_ns, mapped, times);
	if (is_certain || !mapped->code_end ||
	    tally_object_has_code_at(found, mapped->code_start, mapped->code_end))
		return TALLY_FILE_SAME;
	return TALLY_FILE_OTHER_CODE;
}

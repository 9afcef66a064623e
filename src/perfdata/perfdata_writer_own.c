#include "perfdata/perfdata_writer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Returns the offset of our section's mark: right behind the section table. */
static uint64_t mark_offset(const struct tally_perfdata_writer *writer)
{
	uint64_t entries = 0;
	for (unsigned i = 0; i < TALLY_FEATURE_MAX / 64; i++)
		entries += (uint64_t)__builtin_popcountll(writer->feature_bits[i]);
	return writer->end + entries * sizeof(struct tally_disk_section);
}

int tally_perfdata_add_own(struct tally_perfdata_writer *writer, const void *bytes, size_t size,
			   struct tally_error *err)
{
	struct tally_disk_own own = { .section = { writer->features_end, size } };
	size_t done;
	memcpy(own.mark, TALLY_DISK_OWN_MARK, sizeof(own.mark));
	if (writer->is_pipe || !writer->finished || !writer->features_end || writer->has_own)
		return tally_error_set(err, -EINVAL,
				       "a recording that isn't finished can't be added to");
	int result = tally_writer_put_at(writer, bytes, size, own.section.offset, &done);
	if (!result)
		result = tally_writer_put_at(writer, &own, sizeof(own), mark_offset(writer), &done);
	writer->has_own = !result;
	if (!result)
		return 0;
	int cut = ftruncate(writer->fd, (off_t)writer->features_end);
	(void)cut; /* readers ignore bytes behind the end of the features */
	return tally_error_set(err, result, "a section can't be added to the recording: %s",
			       tally_errno_text(result));
}

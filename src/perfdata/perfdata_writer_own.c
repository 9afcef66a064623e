#include "perfdata/perfdata_writer.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* Where the entry of section 255 is: the last of the table. */
static uint64_t entry_offset(const struct tally_perfdata_writer *writer)
{
	uint64_t entries = 0;
	for (unsigned i = 0; i < TALLY_FEATURE_MAX / 64; i++)
		entries += (uint64_t)__builtin_popcountll(writer->feature_bits[i]);
	return writer->end + entries * sizeof(struct tally_disk_section);
}

int tally_perfdata_add_own(struct tally_perfdata_writer *writer, const void *bytes, size_t size, struct tally_error *err)
{
	const unsigned word = TALLY_FEATURE_TALLY / 64;
	struct tally_disk_section section = { writer->features_end, size };
	uint64_t bits = writer->feature_bits[word] | 1ull << TALLY_FEATURE_TALLY % 64;
	size_t done;
	if (writer->is_pipe || !writer->finished || !writer->features_end || writer->feature_bits[word] == bits)
		return tally_error_set(err, -EINVAL, "a recording that isn't finished can't be added to");
	int result = tally_writer_put_at(writer, bytes, size, section.offset, &done);
	if (!result)
		result = tally_writer_put_at(writer, &section, sizeof(section), entry_offset(writer), &done);
	if (!result)
		result = tally_writer_put_at(writer, &bits, sizeof(bits),
					     offsetof(struct tally_disk_header, features) + word * sizeof(bits), &done);
	if (!result) {
		writer->feature_bits[word] = bits;
		return 0;
	}
	int cut = ftruncate(writer->fd, (off_t)writer->features_end);
	(void)cut; /* what stays behind the end is nobody's */
	return tally_error_set(err, result, "a section can't be added to the recording: %s", tally_errno_text(result));
}

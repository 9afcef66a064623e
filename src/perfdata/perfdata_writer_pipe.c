/* Writes a recording to a pipe: records before the data replace a file's header. */
#include "perfdata/perfdata_writer.h"

#include <errno.h>
#include <string.h>

static void put_padded(struct tally_buffer *out, const void *bytes, size_t size)
{
	static const char zeros[8];
	tally_buffer_append(out, bytes, size);
	tally_buffer_append(out, zeros, -size & 7);
}

static void put_attr(struct tally_buffer *out, const struct tally_recorded_event *event,
		     uint32_t attr_size)
{
	struct tally_attr attr = event->attr;
	struct tally_record_header header = { .type = TALLY_RECORD_HEADER_ATTR };
	size_t size = sizeof(header) + attr_size + 8 * event->id_count;
	/* The format limits a record to some 8,000 ids.  Further ids are left out; readers
	 * attribute their records to the first event. */
	if (size > TALLY_RECORD_SIZE_ALIGNED)
		size = TALLY_RECORD_SIZE_ALIGNED;
	header.size = (uint16_t)size;
	attr.size = attr_size;
	tally_buffer_append(out, &header, sizeof(header));
	tally_buffer_append(out, &attr, attr_size);
	tally_buffer_append(out, event->ids, size - sizeof(header) - attr_size);
}

static void put_name(struct tally_buffer *out, const struct tally_recorded_event *event)
{
	struct tally_disk_event_update update = { .header = { .type = TALLY_RECORD_EVENT_UPDATE },
						  .type = TALLY_EVENT_UPDATE_NAME };
	size_t length = event->name ? strlen(event->name) + 1 : 0;
	if (!length || !event->id_count || length > TALLY_RECORD_SIZE_ALIGNED - sizeof(update))
		return;
	update.id = event->ids[0];
	update.header.size = (uint16_t)((sizeof(update) + length + 7) & ~(size_t)7);
	tally_buffer_append(out, &update, sizeof(update));
	put_padded(out, event->name, length);
}

int tally_writer_pipe_head(struct tally_perfdata_writer *writer)
{
	struct tally_buffer out = { 0 };
	struct tally_disk_pipe_header header = { TALLY_PERFDATA_MAGIC, sizeof(header) };
	tally_buffer_append(&out, &header, sizeof(header));
	for (size_t i = 0; i < writer->event_count; i++)
		put_attr(&out, &writer->events[i], writer->attr_size);
	for (size_t i = 0; i < writer->event_count; i++)
		put_name(&out, &writer->events[i]);
	int result = out.failed ? -ENOMEM : tally_writer_put(writer, out.bytes, out.length);
	tally_buffer_release(&out);
	return result;
}

static void put_tracing_data(struct tally_buffer *out, const void *bytes, size_t size)
{
	struct tally_disk_tracing_record record = {
		.header = { .type = TALLY_RECORD_HEADER_TRACING_DATA, .size = sizeof(record) },
		.size = (uint32_t)((size + 7) & ~(size_t)7),
	};
	tally_buffer_append(out, &record, sizeof(record));
	put_padded(out, bytes, size);
}

static void put_feature_record(struct tally_buffer *out, unsigned feature, const void *bytes,
			       size_t size)
{
	struct tally_disk_feature_record record = {
		.header = { .type = TALLY_RECORD_HEADER_FEATURE }, .feature = feature
	};
	if (size > TALLY_RECORD_SIZE_ALIGNED - sizeof(record))
		return;
	record.header.size = (uint16_t)((sizeof(record) + size + 7) & ~(size_t)7);
	tally_buffer_append(out, &record, sizeof(record));
	put_padded(out, bytes, size);
}

/* perf gives up on a feature that it doesn't know: Linux 6.1's ends at PMU_CAPS. */
static bool is_known_to_perf(unsigned feature)
{
	return feature <= TALLY_FEATURE_PMU_CAPS;
}

int tally_writer_pipe_feature(struct tally_perfdata_writer *writer, unsigned feature,
			      const void *bytes, size_t size)
{
	struct tally_buffer out = { 0 };
	if (feature == TALLY_FEATURE_TRACING_DATA)
		put_tracing_data(&out, bytes, size);
	else if (feature == TALLY_FEATURE_BUILD_ID) /* made of records already */
		tally_buffer_append(&out, bytes, size);
	else if (is_known_to_perf(feature))
		put_feature_record(&out, feature, bytes, size);
	int result = out.failed ? -ENOMEM : writer->failure;
	if (!result && out.length)
		result = tally_writer_put(writer, out.bytes, out.length);
	tally_buffer_release(&out);
	return result;
}

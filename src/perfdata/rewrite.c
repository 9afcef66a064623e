/* Rewrites a recording record by record.  A pipe's stream becomes a file. */
#include "perfdata/disk.h"
#include "perfdata/feature.h"
#include "perfdata/graft.h"

#include <errno.h>
#include <string.h>

/* True for records that describe the recording.  A file has this in its head or its features
 * instead. */
static bool is_description(uint32_t type)
{
	return type == TALLY_RECORD_HEADER_ATTR || type == TALLY_RECORD_HEADER_EVENT_TYPE ||
	       type == TALLY_RECORD_HEADER_TRACING_DATA || type == TALLY_RECORD_HEADER_BUILD_ID ||
	       type == TALLY_RECORD_HEADER_FEATURE || type == TALLY_RECORD_EVENT_UPDATE;
}

/* Reads everything before anything is written: a pipe may describe events anywhere in the
 * stream. */
static int read_to_the_end(struct tally_perfdata *data, struct tally_error *err)
{
	struct tally_raw_record record;
	int result;
	while ((result = tally_perfdata_next(data, &record, err)) > 0)
		;
	return result;
}

static int copy_records(const char *path, struct tally_perfdata_writer *writer,
			struct tally_error *err)
{
	struct tally_perfdata *data;
	struct tally_raw_record record;
	struct tally_record_header header;
	int result = tally_perfdata_open(path, &data, err);
	if (result < 0)
		return result;
	while ((result = tally_perfdata_next(data, &record, err)) > 0) {
		memcpy(&header, record.bytes, sizeof(header));
		bool has_payload = header.type == TALLY_RECORD_AUXTRACE ||
				   header.type > TALLY_SIMPLEPERF_RECORD_START;
		if (is_description(header.type) || has_payload)
			continue;
		result = tally_perfdata_write(writer, record.bytes, record.size, err);
		if (result < 0)
			break;
	}
	tally_perfdata_close(data);
	return result;
}

static int copy_feature(const struct tally_perfdata *data, struct tally_perfdata_writer *writer,
			unsigned feature, struct tally_error *err)
{
	struct tally_feature_bytes bytes = tally_perfdata_feature(data, feature);
	struct tally_buffer made = { 0 };
	size_t count;
	if (feature == TALLY_FEATURE_BUILD_ID) {
		const struct tally_recorded_build_id *ids = tally_perfdata_build_ids(data, &count);
		for (size_t i = 0; i < count; i++)
			tally_feature_build_id(&made, &ids[i]);
	} else if (feature == TALLY_FEATURE_EVENT_DESC) {
		const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
		tally_feature_event_desc(&made, events, count);
	} else if (feature != TALLY_FEATURE_COMPRESSED && feature != TALLY_FEATURE_AUXTRACE &&
		   bytes.bytes) {
		tally_buffer_append(&made, bytes.bytes, bytes.size);
	}
	int result = made.failed   ? tally_error_set(err, -ENOMEM, "out of memory")
		     : made.length ? tally_perfdata_write_feature(writer, feature, made.bytes,
								  made.length, err)
				   : 0;
	tally_buffer_release(&made);
	return result;
}

int tally_perfdata_rewrite(const char *path, int to, int level, const void *bytes, size_t size,
			   struct tally_error *err)
{
	const struct tally_perfdata_options options = { .compression_level = level };
	struct tally_perfdata_writer *writer = NULL;
	struct tally_perfdata *data;
	size_t count;
	int result = tally_perfdata_open(path, &data, err);
	if (result < 0)
		return result;
	result = read_to_the_end(data, err);
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	if (!result)
		result = tally_perfdata_writer_new(to, events, count, &options, &writer, err);
	if (!result)
		result = copy_records(path, writer, err);
	for (unsigned i = 1; !result && i < TALLY_FEATURE_MAX; i++)
		result = i == TALLY_FEATURE_TALLY ? 0 : copy_feature(data, writer, i, err);
	if (!result)
		result = tally_perfdata_finish(writer, err);
	if (!result)
		result = tally_perfdata_add_own(writer, bytes, size, err);
	tally_perfdata_writer_free(writer);
	tally_perfdata_close(data);
	return result;
}

/* Walks a recording in every way that the reader offers, like a user who trusts it. */
#ifndef TALLY_TEST_PERFDATA_WALK_H
#define TALLY_TEST_PERFDATA_WALK_H

#include "perfdata/perfdata.h"

#include <stdlib.h>
#include <string.h>

struct perfdata_walk {
	unsigned records, samples, undecodable;
	uint64_t last_time_ns;
	size_t touched;
	unsigned backwards; /* samples with an earlier time than a sample before */
};

static inline void perfdata_walk_record(struct perfdata_walk *walk,
					const struct tally_raw_record *raw)
{
	struct tally_record_header header;
	struct tally_record record;
	memcpy(&header, raw->bytes, sizeof(header));
	if ((uintptr_t)raw->bytes % 8 || header.size != raw->size)
		abort();
	walk->records++;
	walk->touched += ((const uint8_t *)raw->bytes)[raw->size - 1];
	if (header.type >= TALLY_RECORD_USER_START)
		return;
	if (tally_record_decode(&raw->event->attr, raw->bytes, raw->size, &record) < 0) {
		walk->undecodable++;
		return;
	}
	if (header.type != TALLY_RECORD_SAMPLE)
		return;
	walk->samples++;
	walk->backwards += record.sample.time < walk->last_time_ns;
	walk->last_time_ns = record.sample.time;
}

/* Returns a sum over all feature sections, so that every byte is touched. */
static inline size_t perfdata_walk_features(const struct tally_perfdata *data)
{
	size_t count, length;
	const char *text;
	size_t touched = 0;
	for (unsigned i = 0; i <= TALLY_FEATURE_MAX; i++) {
		struct tally_feature_bytes bytes = tally_perfdata_feature(data, i);
		touched += bytes.size ? bytes.bytes[bytes.size - 1] : 0;
		text = tally_perfdata_feature_text(data, i);
		touched += text ? strlen(text) : 0;
	}
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	for (size_t i = 0; i < count; i++) {
		touched += strlen(events[i].name);
		for (size_t j = 0; j < events[i].id_count; j++)
			touched += events[i].ids[j];
		if (tally_perfdata_tracepoint_format(data, events[i].attr.config, &text, &length) &&
		    length)
			touched += (size_t)text[length - 1];
	}
	const struct tally_recorded_build_id *build_ids = tally_perfdata_build_ids(data, &count);
	for (size_t i = 0; i < count; i++)
		touched += strlen(build_ids[i].filename) + build_ids[i].size;
	return touched;
}

/* Reads all records, in file order or by time.  Consumes the reader. */
static inline struct perfdata_walk perfdata_walk(struct tally_perfdata *data, bool ordered)
{
	struct perfdata_walk walk = { 0 };
	struct tally_raw_record raw;
	struct tally_order *order = NULL;
	if (ordered && tally_order_new(data, &order, NULL) < 0)
		abort();
	while ((ordered ? tally_order_next(order, &raw, NULL)
			: tally_perfdata_next(data, &raw, NULL)) == 1)
		perfdata_walk_record(&walk, &raw);
	walk.touched += perfdata_walk_features(data);
	tally_order_free(order);
	return walk;
}

#endif

/* The parts before the data: header, ids, attributes. */
#include "perfdata/perfdata_writer.h"

#include <errno.h>
#include <string.h>

/* Returns how many of the event's ids its section in the attributes has. */
static size_t told_ids(const struct tally_perfdata_writer *writer, size_t event)
{
	return writer->late_ids_at ? writer->events[event].id_count : writer->head_ids[event];
}

static uint64_t head_ids_bytes(const struct tally_perfdata_writer *writer)
{
	uint64_t count = 0;
	for (size_t i = 0; i < writer->event_count; i++)
		count += writer->head_ids[i];
	return count * 8;
}

int tally_writer_put_head(struct tally_perfdata_writer *writer, const uint64_t *feature_bits,
			  uint64_t data_size)
{
	struct tally_buffer head = { 0 };
	uint64_t entry_bytes = writer->attr_size + sizeof(struct tally_disk_section),
		 ids = head_ids_bytes(writer);
	struct tally_disk_header header = {
		.magic = TALLY_PERFDATA_MAGIC,
		.size = sizeof(header),
		.attr_size = entry_bytes,
		.attrs = { sizeof(header) + ids, writer->event_count * entry_bytes },
		.data = { sizeof(header) + ids + writer->event_count * entry_bytes, data_size },
	};
	if (feature_bits)
		memcpy(header.features, feature_bits, sizeof(header.features));
	tally_buffer_append(&head, &header, sizeof(header));
	for (size_t i = 0; i < writer->event_count; i++)
		tally_buffer_append(&head, writer->events[i].ids, 8 * writer->head_ids[i]);
	uint64_t ids_at = writer->late_ids_at ? writer->late_ids_at : sizeof(header);
	for (size_t i = 0; i < writer->event_count; i++) {
		struct tally_attr attr = writer->events[i].attr;
		struct tally_disk_section section = { ids_at, 8 * told_ids(writer, i) };
		attr.size = writer->attr_size;
		ids_at += section.size;
		tally_buffer_append(&head, &attr, writer->attr_size);
		tally_buffer_append(&head, &section, sizeof(section));
	}
	int result = head.failed ? -ENOMEM : 0;
	size_t done;
	if (!result)
		result = tally_writer_put_at(writer, head.bytes, head.length, 0, &done);
	if (!result)
		writer->data_offset = header.data.offset;
	tally_buffer_release(&head);
	return result;
}

int tally_writer_put_late_ids(struct tally_perfdata_writer *writer)
{
	struct tally_buffer ids = { 0 };
	bool any = false;
	size_t done;
	for (size_t i = 0; i < writer->event_count; i++) {
		any |= writer->events[i].id_count > writer->head_ids[i];
		tally_buffer_append(&ids, writer->events[i].ids, 8 * writer->events[i].id_count);
	}
	int result = ids.failed ? -ENOMEM : 0;
	if (any && !result)
		result = tally_writer_put_at(writer, ids.bytes, ids.length, writer->features_end,
					     &done);
	if (any && !result) {
		writer->late_ids_at = writer->features_end;
		writer->features_end += ids.length;
	}
	tally_buffer_release(&ids);
	return result;
}

/* Random mappings, and the records read from them. */
#include "differential.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { RECORD_BYTES = 1 << 16 };

void forget_mapping(struct differential *d, struct slot *slot)
{
	if (slot->mapped)
		d->surface->ops->munmap(d->surface, slot->ring.page, slot->ring.map_size);
	slot->mapped = false;
	free(slot->ring.bytes);
	slot->ring.bytes = NULL;
}

/* Maps the ring once more, which is allowed with the same size, and unmaps it. */
static void map_again(struct differential *d, struct slot *slot, size_t size, int protection,
		      int flags, uint64_t offset)
{
	int error;
	void *page = d->surface->ops->mmap(d->surface, slot->fd, size, protection, flags, offset,
					   &error);
	fprintf(d->out, "mmap #%u again %zu %d %d %llx = %s", slot->symbolic, size, protection,
		flags, (unsigned long long)offset, page ? "mapped" : errno_name(error));
	if (page)
		fprintf(d->out, ", munmap = %s",
			errno_name(d->surface->ops->munmap(d->surface, page, size)));
	fprintf(d->out, "\n");
}

void do_map(struct differential *d)
{
	static const size_t pages[] = { 0, 1, 2, 2, 2, 3, 3, 3, 5, 9, 4, 1025 };
	struct slot *slot = open_slot(d);
	size_t count = ONE_OF(d, pages), size = count * d->surface->page_size;
	int protection = one_in(d, 4) ? PROT_READ : PROT_READ | PROT_WRITE, error;
	int flags = one_in(d, 20) ? MAP_PRIVATE : MAP_SHARED;
	uint64_t offset = one_in(d, 20) ? (1 + below(d, 3)) * d->surface->page_size : 0;
	if (count > 1 && one_in(d, 30))
		size -= 1; /* the system call rounds up to whole pages */
	if (!slot)
		return;
	if (slot->mapped) {
		if (one_in(d, 4))
			map_again(d, slot, one_in(d, 2) ? size : slot->ring.map_size, protection,
				  flags, offset);
		return;
	}
	void *page = d->surface->ops->mmap(d->surface, slot->fd, size, protection, flags, offset,
					   &error);
	fprintf(d->out, "mmap #%u %zu %d %d %llx = %s\n", slot->symbolic, size, protection, flags,
		(unsigned long long)offset, page ? "mapped" : errno_name(error));
	if (!page)
		return;
	slot->mapped = true;
	slot->ring = (struct ring){ .surface = d->surface,
				    .attr = slot->attr,
				    .fd = slot->fd,
				    .page = page,
				    .map_size = size,
				    .bytes = malloc(RECORD_BYTES),
				    .keeps_tail = !(protection & PROT_WRITE) };
	struct tally_user_page *user = slot->ring.page;
	if (user->data_size) {
		slot->buffer = ++d->buffer_count % RINGS;
		d->buffers[slot->buffer] = (struct buffer){ .mixed = !slot->stream_determined };
	}
	fprintf(d->out, "  data_offset=%llu data_size=%llu head=%llu\n",
		(unsigned long long)user->data_offset, (unsigned long long)user->data_size,
		d->buffers[slot->buffer].mixed ? 0ull : (unsigned long long)user->data_head);
}

void do_unmap(struct differential *d)
{
	struct slot *slot = open_slot(d);
	if (!slot || !slot->mapped)
		return;
	int code = d->surface->ops->munmap(d->surface, slot->ring.page, slot->ring.map_size);
	fprintf(d->out, "munmap #%u = %s\n", slot->symbolic, errno_name(code));
	slot->mapped = false;
	forget_mapping(d, slot);
}

/* --- records -------------------------------------------------------------- */

static void print_id(struct differential *d, const char *name, uint64_t id)
{
	struct slot *slot = slot_of_id(d, id);
	if (slot)
		fprintf(d->out, " %s=#%u", name, slot->symbolic);
	else
		fprintf(d->out, " %s=%s", name, id ? "another" : "0");
}

static void print_values(struct differential *d, const struct slot *writer, uint64_t format,
			 const struct tally_read_values *read)
{
	fprintf(d->out, " members=%llu", (unsigned long long)read->count);
	for (uint64_t i = 0; i < read->count; i++) {
		const uint64_t *words = read->values + i * read->stride;
		/* without GROUP, the read has no id */
		bool named = read->stride > 1 && format & TALLY_FORMAT_ID;
		const struct slot *slot = format & TALLY_FORMAT_GROUP ? NULL : writer;
		if (named)
			slot = slot_of_id(d, words[1]);
		if (slot && slot->determined)
			fprintf(d->out, " value=%llu", (unsigned long long)words[0]);
		if (named)
			print_id(d, "of", words[1]);
	}
}

static void print_raw(struct differential *d, const struct tally_sample *sample)
{
	const uint8_t *bytes = sample->raw;
	struct {
		uint16_t type;
		uint8_t flags, preempt_count;
		int32_t pid;
		int32_t field;
	} entry = { 0 };
	memcpy(&entry, bytes, sample->raw_size < sizeof(entry) ? sample->raw_size : sizeof(entry));
	if (sample->raw_size >= sizeof(entry))
		fprintf(d->out, " raw=%u type=%s pid=%s field=%d", sample->raw_size,
			entry.type == d->hit_id ? "hit" : "other", task_name(d, entry.pid),
			entry.field);
	else
		fprintf(d->out, " raw=%u", sample->raw_size);
}

static void print_sample(struct differential *d, const struct slot *reader,
			 const struct tally_sample *sample)
{
	uint64_t watched = d->surface->ops->watched_address(d->surface, TALLY_BREAKPOINT_W);
	const struct slot *writer = sample->type & (TALLY_SAMPLE_ID | TALLY_SAMPLE_IDENTIFIER)
					    ? slot_of_id(d, sample->id)
					    : reader;
	const char *half = sample->ip >> 63 ? "kernel" : "user";
	const char *addr = sample->addr ? "set" : "0";
	if (sample->addr == watched)
		addr = "watched";
	if (sample->type & TALLY_SAMPLE_IP && !d->process)
		fprintf(d->out, " ip=%s", sample->ip ? half : "0");
	if (sample->type & TALLY_SAMPLE_TID)
		fprintf(d->out, " pid=%s tid=%s", task_name(d, (pid_t)sample->pid),
			task_name(d, (pid_t)sample->tid));
	if (sample->type & TALLY_SAMPLE_ADDR && !d->process)
		fprintf(d->out, " addr=%s", addr);
	bool named = !d->process || samples_alone(d, reader);
	if (named && sample->type & (TALLY_SAMPLE_ID | TALLY_SAMPLE_IDENTIFIER))
		print_id(d, "id", sample->id);
	if (named && sample->type & TALLY_SAMPLE_STREAM_ID)
		print_id(d, "stream", sample->stream_id);
	if (sample->type & TALLY_SAMPLE_CPU)
		fprintf(d->out, " cpu=%u", sample->cpu);
	if (sample->type & TALLY_SAMPLE_PERIOD)
		fprintf(d->out, " period=%llu", (unsigned long long)sample->period);
	if (sample->type & TALLY_SAMPLE_READ)
		print_values(d, writer, reader->attr.read_format, &sample->read);
	if (sample->type & TALLY_SAMPLE_RAW)
		print_raw(d, sample);
	if (sample->type & (TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_DATA_SRC | TALLY_SAMPLE_TRANSACTION))
		fprintf(d->out, " weight=%llx source=%llx transaction=%llx",
			(unsigned long long)sample->weight, (unsigned long long)sample->data_src,
			(unsigned long long)sample->transaction);
}

static void print_trailer(struct differential *d, const struct tally_attr *attr,
			  const struct tally_sample_id *id)
{
	if (!id->present)
		return;
	if (attr->sample_type & TALLY_SAMPLE_TID)
		fprintf(d->out, " by %s:%s", task_name(d, (pid_t)id->pid),
			task_name(d, (pid_t)id->tid));
	if (attr->sample_type & (TALLY_SAMPLE_ID | TALLY_SAMPLE_IDENTIFIER))
		print_id(d, "id", id->id);
	if (attr->sample_type & TALLY_SAMPLE_STREAM_ID)
		print_id(d, "stream", id->stream_id);
	if (attr->sample_type & TALLY_SAMPLE_CPU)
		fprintf(d->out, " cpu=%u", id->cpu);
}

static void print_record(struct differential *d, const struct slot *reader,
			 const struct tally_record *record)
{
	bool decoded = !d->buffers[reader->buffer].foreign;
	const char *name = tally_record_type_name(record->header.type);
	bool late = d->process && record->header.type == TALLY_RECORD_SAMPLE;
	fprintf(d->out, "  %s misc=%x size=%u", name ? name : "?", late ? 0 : record->header.misc,
		record->header.size);
	if (decoded && record->header.type == TALLY_RECORD_SAMPLE)
		print_sample(d, reader, &record->sample);
	if (decoded && record->header.type == TALLY_RECORD_LOST)
		fprintf(d->out, " lost=%llu", (unsigned long long)record->lost.lost),
			print_id(d, "of", record->lost.id);
	if (decoded &&
	    (record->header.type == TALLY_RECORD_FORK || record->header.type == TALLY_RECORD_EXIT))
		fprintf(d->out, " pid=%s tid=%s ppid=%s ptid=%s",
			task_name(d, (pid_t)record->task.pid),
			task_name(d, (pid_t)record->task.tid),
			task_name(d, (pid_t)record->task.parent_pid),
			task_name(d, (pid_t)record->task.parent_tid));
	if (decoded && record->header.type == TALLY_RECORD_COMM)
		fprintf(d->out, " tid=%s comm=%s", task_name(d, (pid_t)record->comm.tid),
			record->comm.comm);
	if (decoded && record->header.type == TALLY_RECORD_READ)
		fprintf(d->out, " tid=%s", task_name(d, (pid_t)record->read.tid));
	if (decoded && record->header.type != TALLY_RECORD_SAMPLE)
		print_trailer(d, &reader->attr, &record->sample_id);
	fprintf(d->out, "\n");
}

/* Returns the beginning of an overwritable ring's records: older ones are overwritten. */
static uint64_t first_of(struct ring *ring)
{
	uint64_t head = ring_head(ring), size = ring_data_size(ring);
	return ring->keeps_tail && head - ring->at > size ? head : ring->at;
}

static void print_records(struct differential *d, const struct slot *slot, struct ring *ring,
			  uint64_t end)
{
	for (;;) {
		struct tally_record record = { .header = { 0 } };
		uint64_t before = ring->at;
		int code = ring_next_up_to(ring, end, &record);
		if (ring->at == before) {
			if (code < 0)
				fprintf(d->out, "  then %s\n", errno_name(code));
			return;
		}
		memcpy(&record.header, ring->bytes, sizeof(record.header));
		if (code < 0 && !d->buffers[slot->buffer].foreign)
			fprintf(d->out, "  not to be read:");
		print_record(d, slot, &record);
	}
}

void do_drain(struct differential *d)
{
	struct slot *slot = open_slot(d);
	if (slot && slot->mapped && slot->buffer && !d->buffers[slot->buffer].mixed &&
	    ring_data_size(&slot->ring))
		print_new_records(d, slot);
}

/* Prints the records since the last call.  The event's ring must be mapped. */
void print_new_records(struct differential *d, struct slot *slot)
{
	bool is_backward = slot->attr.flags & TALLY_ATTR_WRITE_BACKWARD;
	struct ring ring = slot->ring;
	uint64_t end = ring_head(&ring);
	fprintf(d->out, "drain #%u\n", slot->symbolic);
	if (is_backward) { /* reads from the newest record; the oldest may be cut off */
		ring.at = end;
		ring.keeps_tail = true;
		end = -ring.at > ring_data_size(&ring) ? ring.at + ring_data_size(&ring) : 0;
	} else {
		ring.at = first_of(&ring);
	}
	print_records(d, slot, &ring, end);
	if (!is_backward)
		slot->ring.at = ring.at;
}

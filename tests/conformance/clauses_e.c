/* E1, E2, E4, E5: tracepoints: formats, hits, which events receive them, their raw records.  E6,
 * E7: opening, filters. */
#include "ring_walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLISECOND 1000000ull

enum { COMMON_SIZE = 8 };

/* --- Formats -------------------------------------------------------------- */

struct field {
	unsigned offset, size;
	bool is_dynamic; /* __data_loc: holds offset and size of data elsewhere in the record */
};

/* Finds a field of a format file by name: "field:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;" */
static bool find_field(const char *format, const char *name, struct field *field)
{
	size_t length = strlen(name);
	for (const char *line = format; line && (line = strstr(line, "field:")); line++) {
		const char *end = strchr(line, ';');
		const char *last = end;
		while (end && last > line && last[-1] == ']') /* skip an array's length */
			while (last > line && *--last != '[')
				;
		if (!end || last - line <= (ptrdiff_t)length ||
		    strncmp(last - length, name, length) || last[-(ptrdiff_t)length - 1] != ' ')
			continue;
		field->is_dynamic = !strncmp(line + 6, "__data_loc", 10);
		return sscanf(end, ";\toffset:%u;\tsize:%u", &field->offset, &field->size) == 2;
	}
	return false;
}

/* Returns the end of the last field. */
static unsigned fields_end(const char *format)
{
	unsigned most = 0;
	for (const char *line = format; line && (line = strstr(line, "\toffset:")); line++) {
		unsigned offset, size;
		if (sscanf(line, "\toffset:%u;\tsize:%u", &offset, &size) == 2 &&
		    offset + size > most)
			most = offset + size;
	}
	return most;
}

static uint64_t field_value(const struct tally_sample *sample, const struct field *field)
{
	uint64_t value = 0;
	if (field->size <= sizeof(value) && field->offset + field->size <= sample->raw_size)
		memcpy(&value, (const uint8_t *)sample->raw + field->offset, field->size);
	return value;
}

static struct tally_attr named_attr(struct surface *surface, const char *name, uint64_t period,
				    uint64_t sample_type)
{
	struct tally_attr attr = ring_hits_attr(surface, period, sample_type);
	attr.config = (uint64_t)CALL(tracepoint, name);
	return attr;
}

/* The surface owns each text until the next call. */
static int format_has_its_parts(struct surface *surface)
{
	static const char *const names[] = { "hit", "weighted", "tasked", "sched:sched_switch" };
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *format = CALL(tracepoint_format, names[i]);
		char id[32];
		CHECK(format);
		snprintf(id, sizeof(id), "ID: %ld\n", CALL(tracepoint, names[i]));
		CHECK_EQUAL(strncmp(format, "name: ", 6), 0);
		CHECK(strstr(format, id));
		CHECK(strstr(format, "format:\n\tfield:"));
		CHECK(strstr(format, "\nprint fmt: \""));
	}
	return 0;
}

static int common_fields_come_first(struct surface *surface)
{
	static const struct { const char *name; unsigned offset, size; } fields[] = {
		{ "common_type", 0, 2 },
		{ "common_flags", 2, 1 },
		{ "common_preempt_count", 3, 1 },
		{ "common_pid", 4, 4 },
	};
	const char *format = CALL(tracepoint_format, "hit");
	CHECK(format);
	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct field field;
		CHECK(find_field(format, fields[i].name, &field));
		CHECK_EQUAL(field.offset, fields[i].offset);
		CHECK_EQUAL(field.size, fields[i].size);
	}
	return 0;
}

static int ids_are_unique(struct surface *surface)
{
	long hit = CALL(tracepoint, "hit"), weighted = CALL(tracepoint, "weighted"),
	     tasked = CALL(tracepoint, "tasked");
	CHECK(hit > 0 && weighted > 0 && tasked > 0);
	CHECK(hit != weighted && hit != tasked && weighted != tasked);
	CHECK_ERROR(CALL(tracepoint, "nobody:knows"), ENOENT);
	return 0;
}

/* Decodes sched_process_fork: parent and child. */
static int raw_decodes_to_fields(struct surface *surface)
{
	struct tally_attr attr = named_attr(surface, "sched:sched_process_fork", 1,
					    TALLY_SAMPLE_RAW);
	const char *format = CALL(tracepoint_format, "sched:sched_process_fork");
	struct ring ring;
	struct tally_record record;
	struct field parent, child;
	CHECK(format && find_field(format, "parent_pid", &parent) &&
	      find_field(format, "child_pid", &child));
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	pid_t task = CALL(spawn, SURFACE_PROCESS, exits_at_once, NULL);
	CHECK(task > 0);
	CHECK_EQUAL(CALL(wait, task), 0);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(field_value(&record.sample, &parent), CALL(self));
	CHECK_EQUAL(field_value(&record.sample, &child), task);
	return 0;
}

static int dynamic_array_is_offset_and_size(struct surface *surface)
{
	struct tally_attr attr = named_attr(surface, "sched:sched_process_fork", 1,
					    TALLY_SAMPLE_RAW);
	const char *format = CALL(tracepoint_format, "sched:sched_process_fork");
	struct ring ring;
	struct tally_record record;
	struct field comm;
	CHECK(format && find_field(format, "parent_comm", &comm));
	if (!comm.is_dynamic && ring_kernel_is_old(surface))
		/* the old kernel has a fixed array here */
		return CLAUSE_NOT_APPLICABLE + NA_OLD_KERNEL;
	CHECK_EQUAL(comm.is_dynamic, true);
	CHECK_EQUAL(comm.size, 4);
	CALL(set_comm, "dynamic");
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(wait, CALL(spawn, SURFACE_PROCESS, exits_at_once, NULL));
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	uint32_t place = (uint32_t)field_value(&record.sample, &comm);
	unsigned offset = place & 0xffff, size = place >> 16;
	CHECK(offset >= fields_end(format) && offset + size <= record.sample.raw_size);
	CHECK_EQUAL(size, sizeof("dynamic"));
	CHECK_EQUAL(memcmp((const uint8_t *)record.sample.raw + offset, "dynamic", size), 0);
	return 0;
}

/* --- E2 ------------------------------------------------------------------- */

static int hit_adds_one(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	for (unsigned i = 1; i <= 5; i++) {
		ring_run_hits(surface, fd, 20);
		CHECK_EQUAL(ring_event_count(surface, fd), 20 * i);
	}
	return 0;
}

static int hit_adds_the_declared_count(struct surface *surface)
{
	struct tally_attr attr = named_attr(surface, "weighted", 1,
					    TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_RAW);
	const char *format = CALL(tracepoint_format, "weighted");
	struct ring ring;
	struct tally_record record;
	struct field runtime;
	uint64_t sum = 0;
	unsigned samples = 0;
	CHECK(format && find_field(format, "runtime", &runtime));
	CHECK_RING(&ring, surface, &attr, 0, -1, 64);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, 10000000);
	CALL(sleep, MILLISECOND);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	for (; ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1; samples++) {
		CHECK_EQUAL(field_value(&record.sample, &runtime), record.sample.period);
		sum += record.sample.period;
	}
	CHECK_BETWEEN(samples, 1, 10000);
	CHECK_EQUAL(sum, ring_event_count(surface, ring.fd));
	return 0;
}

static int declared_address_is_addr(struct surface *surface)
{
	long id = CALL(tracepoint, "addressed");
	const char *format = id < 0 ? NULL : CALL(tracepoint_format, "addressed");
	struct tally_attr attr = named_attr(surface, "addressed", 1,
					    TALLY_SAMPLE_ADDR | TALLY_SAMPLE_RAW);
	struct ring ring;
	struct tally_record record;
	struct field address;
	if (id < 0)
		return CLAUSE_NOT_APPLICABLE + NA_NO_SUCH_EVENT;
	CHECK(format && find_field(format, "address", &address));
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(fault, 1);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.sample.addr, field_value(&record.sample, &address));
	return 0;
}

/* Counts when we wake a child: the hit happens in our task, and the child is the declared task. */
struct wakening {
	/* counts of events on: our task; the child on this CPU; the child on any CPU */
	uint64_t ours, childs, childs_any;
	long samples;                      /* samples of the event on the child on this CPU */
};

static int wake_a_child(struct surface *surface, struct wakening *heard)
{
	struct tally_attr attr = named_attr(surface, "tasked", 1, TALLY_SAMPLE_TID);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, NULL);
	struct ring childs;
	int cpu = CALL(this_cpu);
	CHECK(child);
	child->stays = true;
	CHECK_EQUAL(CALL(pin, cpu), 0);
	ring_child_go(surface, child);
	/* without it, the child might not be asleep yet, and the wake-up would do nothing */
	CALL(sleep, 5 * MILLISECOND);
	CHECK_RING(&childs, surface, &attr, child->task, cpu, 1);
	int own = CALL(open, &attr, 0, -1, -1, 0), any = CALL(open, &attr, child->task, -1, -1, 0);
	CHECK(own >= 0 && any >= 0);
	CALL(ioctl, childs.fd, TALLY_IOC_ENABLE, 0);
	CALL(ioctl, any, TALLY_IOC_ENABLE, 0);
	CALL(ioctl, own, TALLY_IOC_ENABLE, 0);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	*heard = (struct wakening){ ring_event_count(surface, own),
				    ring_event_count(surface, childs.fd),
				    ring_event_count(surface, any),
				    ring_count(&childs, TALLY_RECORD_SAMPLE) };
	CALL(munmap, childs.page, childs.map_size);
	return 0;
}

/* Both events on the child count its own hits.  (docs/conformance.md, quirks.) */
static int declared_task_is_given_the_count(struct surface *surface)
{
	struct wakening heard = { 0 };
	for (unsigned attempt = 0; attempt < 5 && heard.childs <= heard.childs_any; attempt++)
		CHECK_EQUAL(wake_a_child(surface, &heard), 0);
	CHECK_BETWEEN(heard.ours, 1, 1000);
	CHECK_BETWEEN(heard.childs, heard.childs_any + 1, 1000);
	return 0;
}

static int declared_task_is_given_no_sample(struct surface *surface)
{
	struct wakening heard = { 0 };
	CHECK_EQUAL(wake_a_child(surface, &heard), 0);
	if (heard.samples && ring_kernel_is_old(surface))
		return CLAUSE_NOT_APPLICABLE + NA_OLD_KERNEL;
	CHECK_BETWEEN(heard.samples, 0, heard.childs_any);
	return 0;
}

/* --- E4 ------------------------------------------------------------------- */

static void hit_ten(struct surface *surface)
{
	CALL(hit, 10);
}

static int other_tasks_hits_are_not_heard(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, hit_ten);
	CHECK(fd >= 0 && child);
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	CALL(hit, 3);
	CHECK_EQUAL(ring_event_count(surface, fd), 3);
	return 0;
}

static int listener_of_another_task_hears_it(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, hit_ten);
	CHECK(child);
	int fd = CALL(open, &attr, child->task, -1, -1, 0);
	CHECK(fd >= 0);
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CALL(hit, 5);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	CHECK_EQUAL(ring_event_count(surface, fd), 10);
	return 0;
}

static int listener_follows_its_task_across_cpus(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	for (unsigned i = 0; i < 6; i++) {
		CHECK_EQUAL(CALL(pin, (int)(i % 2)), 0);
		CALL(hit, 10);
	}
	CHECK_EQUAL(ring_event_count(surface, fd), 60);
	return 0;
}

static int listener_of_one_cpu_hears_its_task_there_alone(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int fd = CALL(open, &attr, 0, 1, -1, 0);
	CHECK(fd >= 0);
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CHECK_EQUAL(CALL(pin, 0), 0);
	CALL(hit, 10);
	CHECK_EQUAL(CALL(pin, 1), 0);
	CALL(hit, 5);
	CHECK_EQUAL(ring_event_count(surface, fd), 5);
	return 0;
}

static int listener_of_a_cpu_hears_every_task_there(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int cpu = CALL(this_cpu);
	CHECK_EQUAL(CALL(pin, cpu), 0);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, hit_ten);
	int fd = CALL(open, &attr, -1, cpu, -1, 0);
	CHECK(fd >= 0 && child);
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CALL(hit, 3);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	/* Other tasks on the CPU may hit it too. */
	CHECK_BETWEEN(ring_event_count(surface, fd), 13, 1000000);
	return 0;
}

static int listener_of_another_cpu_hears_nothing(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 1, TALLY_SAMPLE_TID);
	struct ring ring;
	struct tally_record record;
	CHECK_EQUAL(CALL(pin, 0), 0);
	CHECK_RING(&ring, surface, &attr, -1, 1, 8);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(hit, 20);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	while (ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1)
		CHECK((pid_t)record.sample.tid != CALL(self));
	return 0;
}

static int every_listener_hears_a_hit(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	int fds[5];
	for (unsigned i = 0; i < 5; i++) {
		fds[i] = CALL(open, &attr, 0, -1, -1, 0);
		CHECK(fds[i] >= 0);
		CALL(ioctl, fds[i], TALLY_IOC_ENABLE, 0);
	}
	CALL(hit, 7);
	CHECK_EQUAL(CALL(close, fds[2]), 0);
	CALL(hit, 2);
	for (unsigned i = 0; i < 5; i++)
		if (i != 2)
			CHECK_EQUAL(ring_event_count(surface, fds[i]), 9);
	return 0;
}

static int heirs_hits_are_counted(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 0, 0);
	attr.flags |= TALLY_ATTR_INHERIT;
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, hit_ten);
	CHECK(child);
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	CALL(hit, 1);
	CHECK_EQUAL(ring_event_count(surface, fd), 11);
	return 0;
}

/* --- E5 ------------------------------------------------------------------- */

static int raw_hit(struct surface *surface, const char *name, struct ring *ring,
		   struct tally_record *record)
{
	struct tally_attr attr = named_attr(surface, name, 1, TALLY_SAMPLE_RAW);
	CHECK_RING(ring, surface, &attr, 0, -1, 8);
	CALL(ioctl, ring->fd, TALLY_IOC_ENABLE, 0);
	CALL(hit, 1);
	CALL(sleep, 100000);
	CALL(ioctl, ring->fd, TALLY_IOC_DISABLE, 0);
	CHECK_FOUND(ring, TALLY_RECORD_SAMPLE, record);
	return 0;
}

static int raw_begins_with_the_common_fields(struct surface *surface)
{
	static const char *const names[] = { "hit", "weighted", "sched:sched_switch" };
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct ring ring;
		struct tally_record record;
		uint16_t type;
		int32_t pid;
		CHECK_EQUAL(raw_hit(surface, names[i], &ring, &record), 0);
		CHECK(record.sample.raw_size >= COMMON_SIZE);
		memcpy(&type, record.sample.raw, sizeof(type));
		memcpy(&pid, (const uint8_t *)record.sample.raw + 4, sizeof(pid));
		CHECK_EQUAL(type, CALL(tracepoint, names[i]));
		CHECK_EQUAL(pid, CALL(self));
	}
	return 0;
}

static int raw_size_fills_words(struct surface *surface)
{
	static const char *const names[] = { "hit", "weighted", "sched:sched_switch" };
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct ring ring;
		struct tally_record record;
		unsigned end = fields_end(CALL(tracepoint_format, names[i]));
		CHECK_EQUAL(raw_hit(surface, names[i], &ring, &record), 0);
		CHECK_EQUAL((record.sample.raw_size + 4) % 8, 0);
		CHECK(record.sample.raw_size >= end);
		CHECK_EQUAL(record.header.size, 8 + 4 + record.sample.raw_size);
	}
	return 0;
}

/* sched_switch's record is its fields plus the compiler's padding to whole words; it has no dynamic
 * arrays. */
static int raw_size_is_aligned_less_four(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	unsigned end = fields_end(CALL(tracepoint_format, "sched:sched_switch"));
	unsigned whole = (end + 7) & ~7u;
	CHECK_EQUAL(raw_hit(surface, "sched:sched_switch", &ring, &record), 0);
	CHECK_EQUAL(record.sample.raw_size, ((whole + 4 + 7) & ~7u) - 4);
	return 0;
}

static int raw_tail_is_zero(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	unsigned end = fields_end(CALL(tracepoint_format, "sched:sched_switch"));
	CHECK_EQUAL(raw_hit(surface, "sched:sched_switch", &ring, &record), 0);
	const uint8_t *raw = record.sample.raw;
	for (unsigned i = (end + 7) & ~7u; i < record.sample.raw_size; i++)
		CHECK_EQUAL(raw[i], 0);
	return 0;
}

enum {
	KERNEL_HITS = SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED,
	TWO = KERNEL_HITS | SURFACE_TWO_CPUS
};

const struct clause clauses_e[] = {
	{ "E1.format", "A tracepoint's format has name, id, fields, print format.",
	  SURFACE_TRACEPOINTS, format_has_its_parts },
	{ "E1.common_fields", "The common fields come first: type, flags, preempt_count, pid.",
	  SURFACE_TRACEPOINTS, common_fields_come_first },
	{ "E1.ids", "Each tracepoint has an id of its own; unknown ones have none.",
	  SURFACE_TRACEPOINTS, ids_are_unique },
	{ "E1.raw_decodes_to_fields", "RAW holds the fields where the format says.", KERNEL_HITS,
	  raw_decodes_to_fields },
	{ "E1.dynamic_array", "A dynamic array is offset and size of bytes behind the fields.",
	  KERNEL_HITS, dynamic_array_is_offset_and_size },
	{ "E2.hit_adds_one", "A hit adds 1.", KERNEL_HITS, hit_adds_one },
	{ "E2.hit_adds_the_declared_count",
	  "A hit adds the declared count, and the period is that.", KERNEL_HITS,
	  hit_adds_the_declared_count },
	{ "E2.declared_address", "A declared address is ADDR.", KERNEL_HITS,
	  declared_address_is_addr },
	{ "E2.declared_task", "A declared task's listeners on the hit's CPU count it, too.",
	  KERNEL_HITS, declared_task_is_given_the_count },
	{ "E2.declared_task_no_sample",
	  "They take no sample of it, nor do those of any CPU hear it.", KERNEL_HITS,
	  declared_task_is_given_no_sample },
	{ "E4.other_tasks_hits", "A task's listener doesn't hear other tasks.", KERNEL_HITS,
	  other_tasks_hits_are_not_heard },
	{ "E4.listener_of_another_task", "A listener on another task hears that task.", KERNEL_HITS,
	  listener_of_another_task_hears_it },
	{ "E4.listener_follows_its_task", "A listener follows its task across CPUs.", TWO,
	  listener_follows_its_task_across_cpus },
	{ "E4.listener_of_task_and_cpu", "A listener on a task and a CPU hears it there alone.",
	  TWO, listener_of_one_cpu_hears_its_task_there_alone },
	{ "E4.listener_of_a_cpu", "A CPU's listener hears every task there.", KERNEL_HITS,
	  listener_of_a_cpu_hears_every_task_there },
	{ "E4.listener_of_another_cpu", "Another CPU's listener hears nothing of it.", TWO,
	  listener_of_another_cpu_hears_nothing },
	{ "E4.every_listener", "Every listener hears a hit; one that closes takes none away.",
	  KERNEL_HITS, every_listener_hears_a_hit },
	{ "E4.heirs", "An inherited child's hits are counted.", KERNEL_HITS,
	  heirs_hits_are_counted },
	{ "E5.raw_common_fields", "A raw record begins with type, flags, preempt_count, pid.",
	  KERNEL_HITS, raw_begins_with_the_common_fields },
	{ "E5.raw_fills_words", "Size word and raw record together are whole words.", KERNEL_HITS,
	  raw_size_fills_words },
	{ "E5.raw_size", "A raw record of n bytes has ALIGN(n + 4, 8) - 4.", KERNEL_HITS,
	  raw_size_is_aligned_less_four },
	{ "E5.raw_tail_is_zero", "What is added to a raw record is zero.", KERNEL_HITS,
	  raw_tail_is_zero },
	{ NULL, NULL, 0, NULL },
};

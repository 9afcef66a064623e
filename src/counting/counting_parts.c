/* Finds the part that a task or CPU is counted in.  Parts have perf's names. */
#include "counting/counting_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tally_counting_add_part(struct tally_counting *c, const char *label)
{
	size_t events = c->options->event_count;
	if (c->part_count == c->part_capacity) {
		size_t capacity = c->part_capacity ? 2 * c->part_capacity : 4;
		struct tally_count_part *parts = reallocarray(c->parts, capacity, sizeof(*parts));
		if (parts)
			c->parts = parts;
		struct tally_count *rows = parts ? reallocarray(c->rows, capacity * (events + 1),
								sizeof(*rows))
						 : NULL;
		if (!rows)
			return -ENOMEM;
		c->rows = rows;
		c->part_capacity = capacity;
	}
	const char *kept = *label ? tally_arena_string(&c->arena, label) : "";
	if (!kept)
		return -ENOMEM;
	memset(c->rows + c->part_count * events, 0, events * sizeof(*c->rows));
	c->parts[c->part_count++] = (struct tally_count_part){ .label = kept };
	return 0;
}

static void label_thread(pid_t tid, char *out, size_t size)
{
	char comm[TALLY_PROC_COMM_MAX];
	if (tally_proc_comm(tid, comm, sizeof(comm)) < 0)
		snprintf(out, size, "%d", tid);
	else
		snprintf(out, size, "%s-%d", comm, tid);
}

/* A CPU without a die number is in die 0, as in perf. */
static void label_cpu(enum tally_count_by by, unsigned cpu, char *out, size_t size)
{
	struct tally_cpu_location at;
	int node;
	tally_cpu_location_read(NULL, cpu, &at, &node);
	if (at.die < 0)
		at.die = 0;
	if (by == TALLY_COUNT_BY_CORE)
		snprintf(out, size, "S%d-D%d-C%d", at.package, at.die, at.core);
	else if (by == TALLY_COUNT_BY_DIE)
		snprintf(out, size, "S%d-D%d", at.package, at.die);
	else if (by == TALLY_COUNT_BY_SOCKET)
		snprintf(out, size, "S%d", at.package);
	else
		snprintf(out, size, "N%d", node);
}

int tally_counting_find_part(struct tally_counting *c, struct tally_count_scope *scope)
{
	enum tally_count_by by = c->options->by;
	char label[TALLY_PROC_COMM_MAX + 32] = "";
	bool is_single = by == TALLY_COUNT_BY_CPU || by == TALLY_COUNT_BY_THREAD;
	if (by == TALLY_COUNT_BY_THREAD)
		label_thread(scope->pid, label, sizeof(label));
	else if (by == TALLY_COUNT_BY_CPU)
		snprintf(label, sizeof(label), "CPU%d", scope->cpu);
	else if (by != TALLY_COUNT_BY_NOTHING)
		label_cpu(by, (unsigned)scope->cpu, label, sizeof(label));
	size_t part = 0;
	while (part < c->part_count && (is_single || strcmp(c->parts[part].label, label) != 0))
		part++;
	if (part == c->part_count) {
		if (tally_counting_add_part(c, label) < 0)
			return -ENOMEM;
		tally_counting_name_rows(c, part);
	}
	c->parts[part].cpus += scope->cpu >= 0;
	scope->part = part;
	return 0;
}

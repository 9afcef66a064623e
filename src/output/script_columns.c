#include "output/script_columns.h"

#include "output/branch_text.h"
#include "output/script_fields.h"
#include "output/script_values.h"
#include "profile/sample_parts.h"

#include <inttypes.h>
#include <string.h>

static const struct tally_sample *sample_of(const struct tally_script_cell *cell)
{
	return &cell->record->sample;
}

static void put_hexadecimal(uint64_t value, struct tally_buffer *out)
{
	tally_buffer_printf(out, "0x%" PRIx64, value);
}

/* Removes the blanks that perf's layout puts around a value. */
static void trim(struct tally_buffer *out)
{
	size_t blanks = strspn(tally_buffer_string(out), " ");
	if (out->failed || !out->length)
		return;
	memmove(out->bytes, out->bytes + blanks, out->length + 1 - blanks);
	out->length -= blanks;
	while (out->length && out->bytes[out->length - 1] == ' ')
		out->bytes[--out->length] = '\0';
}

/* ---- task, time, event -------------------------------------------------- */

static void command(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	char buffer[16];
	tally_buffer_text(out, tally_tasks_comm(&cell->recording->tasks, sample_of(cell)->pid,
						sample_of(cell)->tid, buffer));
}

static int64_t pid(const struct tally_script_cell *cell)
{
	return (int32_t)sample_of(cell)->pid;
}

static int64_t tid(const struct tally_script_cell *cell)
{
	return (int32_t)sample_of(cell)->tid;
}

static uint64_t cpu(const struct tally_script_cell *cell)
{
	return sample_of(cell)->cpu;
}

static uint64_t time_ns(const struct tally_script_cell *cell)
{
	return sample_of(cell)->time;
}

static void event(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_buffer_text(out, cell->event->name);
}

static uint64_t period(const struct tally_script_cell *cell)
{
	return sample_of(cell)->type & TALLY_SAMPLE_PERIOD ? sample_of(cell)->period
							   : cell->event->attr.sample_period;
}

static void trace(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_buffer_text(out, cell->trace);
}

static void misc(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	char text[TALLY_SCRIPT_MISC_SIZE];
	tally_script_misc(text, &cell->record->header);
	tally_buffer_append(out, text, sizeof(text));
	trim(out);
}

static void wall_time(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	char text[TALLY_SCRIPT_WALL_TIME_MAX];
	tally_script_wall_time(text, sample_of(cell)->time + cell->wall_offset, cell->nanoseconds);
	tally_buffer_text(out, text);
}

/* ---- memory -------------------------------------------------------------- */

static void address(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	put_hexadecimal(sample_of(cell)->addr, out);
}

static void data_bits(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	put_hexadecimal(sample_of(cell)->data_src, out);
}

static void data_words(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_data_source_text(sample_of(cell)->data_src, out);
}

static uint64_t weight(const struct tally_script_cell *cell)
{
	return tally_sample_cost(sample_of(cell));
}

static uint64_t latency(const struct tally_script_cell *cell)
{
	return tally_sample_latency(sample_of(cell));
}

static void physical(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	put_hexadecimal(sample_of(cell)->phys_addr, out);
}

static uint64_t data_page(const struct tally_script_cell *cell)
{
	return sample_of(cell)->data_page_size;
}

static uint64_t code_page(const struct tally_script_cell *cell)
{
	return sample_of(cell)->code_page_size;
}

/* ---- printed as perf does ---------------------------------------------- */

static void cgroup(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_script_put_memory(cell->recording, sample_of(cell), TALLY_FIELD_CGROUP, out);
	trim(out);
}

static void regs_intr(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_script_put_regs(cell->recording, cell->event, sample_of(cell), TALLY_FIELD_REGS_INTR,
			      out);
	trim(out);
}

static void regs_user(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_script_put_regs(cell->recording, cell->event, sample_of(cell), TALLY_FIELD_REGS_USER,
			      out);
	trim(out);
}

static void put_branches(const struct tally_script_cell *cell, enum tally_branch_field field,
			 struct tally_buffer *out)
{
	if (tally_branch_text(cell->recording, sample_of(cell), field, false, out) < 0)
		out->failed = true;
	trim(out);
}

static void branches(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	put_branches(cell, TALLY_BRANCH_FIELD_ADDRESSES, out);
}

static void branch_symbols(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	put_branches(cell, TALLY_BRANCH_FIELD_SYMBOLS, out);
}

static void bpf_output(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	const unsigned char *bytes = sample_of(cell)->raw;
	for (uint32_t i = 0; i < sample_of(cell)->raw_size && !out->failed; i++)
		tally_buffer_printf(out, "%02x", bytes[i]);
}

const struct tally_script_column tally_script_columns[] = {
	{ TALLY_FIELD_COMM, "command", .text = command },
	{ TALLY_FIELD_PID, "pid", TALLY_SAMPLE_TID, .signed_number = pid },
	{ TALLY_FIELD_TID, "tid", TALLY_SAMPLE_TID, .signed_number = tid },
	{ TALLY_FIELD_CPU, "cpu", TALLY_SAMPLE_CPU, .number = cpu },
	{ TALLY_FIELD_TIME, "time_ns", TALLY_SAMPLE_TIME, .number = time_ns },
	{ TALLY_FIELD_EVENT, "event", .text = event },
	{ TALLY_FIELD_PERIOD, "period", .number = period },
	{ TALLY_FIELD_TRACE, "trace", .text = trace },
	{ TALLY_FIELD_MISC, "misc", .text = misc },
	{ TALLY_FIELD_WALL_TIME, "tod", TALLY_SAMPLE_TIME, .text = wall_time },
	{ TALLY_FIELD_ADDR, "addr", TALLY_SAMPLE_ADDR, .text = address },
	{ TALLY_FIELD_DATA_SOURCE, "data_src", TALLY_SAMPLE_DATA_SRC, .text = data_bits },
	{ TALLY_FIELD_DATA_SOURCE, "data_source", TALLY_SAMPLE_DATA_SRC, .text = data_words },
	{ TALLY_FIELD_WEIGHT, "weight", TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT,
	  .number = weight },
	{ TALLY_FIELD_LATENCY, "ins_lat", TALLY_SAMPLE_WEIGHT_STRUCT, .number = latency },
	{ TALLY_FIELD_PHYS_ADDR, "phys_addr", TALLY_SAMPLE_PHYS_ADDR, .text = physical },
	{ TALLY_FIELD_DATA_PAGE_SIZE, "data_page_size", TALLY_SAMPLE_DATA_PAGE_SIZE,
	  .number = data_page },
	{ TALLY_FIELD_CODE_PAGE_SIZE, "code_page_size", TALLY_SAMPLE_CODE_PAGE_SIZE,
	  .number = code_page },
	{ TALLY_FIELD_CGROUP, "cgroup", TALLY_SAMPLE_CGROUP, .text = cgroup },
	{ TALLY_FIELD_REGS_INTR, "iregs", TALLY_SAMPLE_REGS_INTR, .text = regs_intr },
	{ TALLY_FIELD_REGS_USER, "uregs", TALLY_SAMPLE_REGS_USER, .text = regs_user },
	{ TALLY_FIELD_BRANCHES, "brstack", TALLY_SAMPLE_BRANCH_STACK, .text = branches },
	{ TALLY_FIELD_BRANCH_SYMBOLS, "brstacksym", TALLY_SAMPLE_BRANCH_STACK,
	  .text = branch_symbols },
	{ TALLY_FIELD_BPF_OUTPUT, "bpf_output", TALLY_SAMPLE_RAW, .text = bpf_output },
	{ 0 },
};

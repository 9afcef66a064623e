/* First come the functions that print fields, then the table of fields, then the parser of -F,
 * which changes the shown fields of each type of event.  The last function fits them to one
 * event. */
#include "output/output.h"

#include "base/suggest.h"
#include "profile/profile.h"
#include "tally/perf_event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Fields that only this file knows.  A new one takes the next bit. */
enum {
	ADDR = 1 << TALLY_FIELDS_SPECIAL,
	DATA_SOURCE = ADDR << 1,
	WEIGHT = ADDR << 2,
	LATENCY = ADDR << 3,
	PHYS_ADDR = ADDR << 4,
	DATA_PAGE_SIZE = ADDR << 5,
	CODE_PAGE_SIZE = ADDR << 6,
	CGROUP = ADDR << 7,
	REGS_INTR = ADDR << 8,
	REGS_USER = ADDR << 9,
	BRANCHES = ADDR << 10,
	BRANCH_SYMBOLS = ADDR << 11,
	BPF_OUTPUT = ADDR << 12,
};

/* Fields shown by default. */
enum {
	OF_ALL = TALLY_FIELD_COMM | TALLY_FIELD_PID | TALLY_FIELD_TID | TALLY_FIELD_CPU |
		 TALLY_FIELD_TIME | TALLY_FIELD_EVENT | TALLY_FIELD_PERIOD,
	USUAL = TALLY_FIELD_COMM | TALLY_FIELD_TID | TALLY_FIELD_CPU | TALLY_FIELD_TIME |
		TALLY_FIELD_EVENT,
	PLACE = TALLY_FIELD_IP | TALLY_FIELD_SYMBOL | TALLY_FIELD_OFFSET | TALLY_FIELD_OBJECT,
	ALL_TYPES = (1 << TALLY_SCRIPT_TYPES) - 1,
	TRACEPOINTS = 1 << TALLY_TYPE_TRACEPOINT,
	MEMORY = ADDR | DATA_SOURCE | WEIGHT | LATENCY | PHYS_ADDR | DATA_PAGE_SIZE |
		 CODE_PAGE_SIZE,
};

/* ---- task, time, event --------------------------------------------------- */

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
	if (sample_of(cell)->type & TALLY_SAMPLE_PERIOD)
		return sample_of(cell)->period;
	return cell->event->attr.sample_period;
}

static void trace(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_buffer_text(out, cell->trace);
}

void tally_script_misc(char *at, const struct tally_record_header *header)
{
	static const char modes[8] = { 0, 'K', 'U', 'H', 'G', 'g', 0, 0 };
	static const struct {
		uint32_t type;
		uint16_t bit;
		char letter;
	} bits[] = {
		{ TALLY_RECORD_SAMPLE, TALLY_MISC_EXACT_IP, 'E' },
		{ TALLY_RECORD_MMAP, TALLY_MISC_MMAP_DATA, 'M' },
		{ TALLY_RECORD_MMAP2, TALLY_MISC_MMAP_DATA, 'M' },
		{ TALLY_RECORD_COMM, TALLY_MISC_COMM_EXEC, 'E' },
		{ TALLY_RECORD_SWITCH, TALLY_MISC_SWITCH_OUT, 'S' },
		{ TALLY_RECORD_SWITCH, TALLY_MISC_SWITCH_OUT_PREEMPT, 'p' },
		{ TALLY_RECORD_SWITCH_CPU_WIDE, TALLY_MISC_SWITCH_OUT, 'S' },
		{ TALLY_RECORD_SWITCH_CPU_WIDE, TALLY_MISC_SWITCH_OUT_PREEMPT, 'p' },
	};
	memset(at, ' ', TALLY_SCRIPT_MISC_SIZE);
	if (modes[header->misc & TALLY_MISC_CPUMODE_MASK])
		*at++ = modes[header->misc & TALLY_MISC_CPUMODE_MASK];
	for (unsigned i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (header->type == bits[i].type && header->misc & bits[i].bit)
			*at++ = bits[i].letter;
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

/* True if samples carry a data address: page faults do, clock samples don't. */
static bool is_of_data(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE &&
	       (attr->config == TALLY_SW_PAGE_FAULTS || attr->config == TALLY_SW_PAGE_FAULTS_MIN ||
		attr->config == TALLY_SW_PAGE_FAULTS_MAJ);
}

/* Puts the name of the data after its address. */
static void put_data_place(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	struct tally_data_name name;
	if (tally_names_data(&cell->recording->names, sample_of(cell)->pid, sample_of(cell)->addr,
			     &name) < 0) {
		out->failed = true;
		return;
	}
	if (cell->shown & TALLY_FIELD_SYMBOL) {
		tally_buffer_printf(out, " %s", name.name ? name.name : "[unknown]");
		if (name.name && cell->shown & TALLY_FIELD_OFFSET)
			tally_buffer_printf(out, "+0x%" PRIx64, name.offset);
	}
	if (cell->shown & TALLY_FIELD_OBJECT)
		tally_buffer_printf(out, " (%s)", name.object);
}

static void address(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	put_hexadecimal(sample_of(cell)->addr, out);
}

static void put_address(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_buffer_printf(out, "%16" PRIx64, sample_of(cell)->addr);
	if (is_of_data(&cell->event->attr))
		put_data_place(cell, out);
}

static void data_bits(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	put_hexadecimal(sample_of(cell)->data_src, out);
}

static void data_words(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_data_source_text(sample_of(cell)->data_src, out);
}

static void put_data_source(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	size_t before = out->length, *width = cell->source_width;
	tally_buffer_printf(out, "%16" PRIx64 " ", sample_of(cell)->data_src);
	tally_data_source_text(sample_of(cell)->data_src, out);
	size_t length;
	if (out->failed)
		length = *width;
	else
		length = out->length - before;
	if (length > *width)
		*width = length;
	tally_buffer_printf(out, "%*s", (int)(*width - length), "");
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

static void put_physical(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_buffer_printf(out, "%16" PRIx64, sample_of(cell)->phys_addr);
}

static uint64_t data_page(const struct tally_script_cell *cell)
{
	return sample_of(cell)->data_page_size;
}

static void put_data_page(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_buffer_char(out, ' ');
	tally_page_size_text(sample_of(cell)->data_page_size, out);
}

static uint64_t code_page(const struct tally_script_cell *cell)
{
	return sample_of(cell)->code_page_size;
}

static void put_code_page(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	tally_buffer_char(out, ' ');
	tally_page_size_text(sample_of(cell)->code_page_size, out);
}

/* ---- cgroups, registers, branches ---------------------------------------- */

static void put_cgroup(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	const struct tally_tasks *tasks = &cell->recording->tasks;
	uint32_t path = tally_tasks_cgroup(tasks, sample_of(cell)->cgroup);
	const char *text = "unknown";
	if (path != TALLY_STRING_NONE)
		text = tally_strings_text(&tasks->strings, path);
	tally_buffer_printf(out, " %s", text);
}

static void put_regs(enum tally_arch arch, const struct tally_sample_regs *regs, uint64_t mask,
		     struct tally_buffer *out)
{
	unsigned word = 0;
	if (!regs->words)
		return;
	tally_buffer_printf(out, " ABI:%" PRIu64 " ", regs->abi);
	for (unsigned bit = 0; bit < 64; bit++) {
		if (!(mask >> bit & 1))
			continue;
		const char *name = tally_arch_register(arch, bit);
		tally_buffer_printf(out, "%5s:0x%" PRIx64 " ", name ? name : "unknown",
				    regs->words[word++]);
	}
}

static void put_regs_intr(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	put_regs(cell->recording->machine.arch, &sample_of(cell)->regs_intr,
		 cell->event->attr.sample_regs_intr, out);
}

static void put_regs_user(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	put_regs(cell->recording->machine.arch, &sample_of(cell)->regs_user,
		 cell->event->attr.sample_regs_user, out);
}

static void put_branches(const struct tally_script_cell *cell, enum tally_branch_field field,
			 struct tally_buffer *out)
{
	if (sample_of(cell)->branches &&
	    tally_branch_text(cell->recording, sample_of(cell), field,
			      cell->shown & TALLY_FIELD_OBJECT, out) < 0)
		out->failed = true;
}

static void put_branch_addresses(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	put_branches(cell, TALLY_BRANCH_FIELD_ADDRESSES, out);
}

/* If both are requested, perf prints addresses. */
static void put_branch_symbols(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	if (!(cell->shown & BRANCHES))
		put_branches(cell, TALLY_BRANCH_FIELD_SYMBOLS, out);
}

/* ---- raw bytes ----------------------------------------------------------- */

static bool is_printable(char byte)
{
	return byte >= ' ' && byte <= '~'; /* ASCII in any locale */
}

/* True for printable text followed by NULs only. */
static bool is_text(const char *bytes, size_t size)
{
	size_t length = strnlen(bytes, size), nuls = length;
	for (size_t i = 0; i < length; i++)
		if (!is_printable(bytes[i]))
			return false;
	while (nuls < size && !bytes[nuls])
		nuls++;
	return length < size && nuls == size;
}

/* Puts lines of their own. */
static void put_bpf_output(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	enum { ROW = 8 };
	const struct tally_sample *sample = sample_of(cell);
	const unsigned char *bytes = sample->raw;
	for (uint32_t at = 0; at < sample->raw_size && !out->failed; at += ROW) {
		char text[ROW + 1] = "";
		tally_buffer_printf(
			out, "%s %04x:", at ? "                 " : "\n      BPF output:", at);
		for (uint32_t i = 0; i < ROW; i++) {
			bool is_there = at + i < sample->raw_size;
			if (is_there)
				tally_buffer_printf(out, " %02x", bytes[at + i]);
			else
				tally_buffer_text(out, "   ");
			if (is_there)
				text[i] = '.';
			else
				text[i] = ' ';
			if (is_there && is_printable((char)bytes[at + i]))
				text[i] = (char)bytes[at + i];
		}
		tally_buffer_printf(out, "  %s\n", text);
	}
	if (sample->raw_size && is_text(sample->raw, sample->raw_size))
		tally_buffer_printf(out, "      BPF string: \"%s\"\n", (const char *)sample->raw);
}

static void bpf_output(const struct tally_script_cell *cell, struct tally_buffer *out)
{
	const unsigned char *bytes = sample_of(cell)->raw;
	for (uint32_t i = 0; i < sample_of(cell)->raw_size && !out->failed; i++)
		tally_buffer_printf(out, "%02x", bytes[i]);
}

/* ---- the table ----------------------------------------------------------- */

/* In the order of perf's list, for suggestions and errors. */
static const struct tally_script_row rows[] = {
	{ "comm", TALLY_FIELD_COMM, .column = "command", .text = command },
	{ "tid", TALLY_FIELD_TID, TALLY_SAMPLE_TID, "TID", "tid", .signed_number = tid },
	{ "pid", TALLY_FIELD_PID, TALLY_SAMPLE_TID, "PID", "pid", .signed_number = pid },
	{ "time", TALLY_FIELD_TIME, TALLY_SAMPLE_TIME, "TIME", "time_ns", .number = time_ns },
	{ "cpu", TALLY_FIELD_CPU, TALLY_SAMPLE_CPU, "CPU", "cpu", .number = cpu },
	{ "event", TALLY_FIELD_EVENT, .column = "event", .text = event },
	{ "trace", TALLY_FIELD_TRACE, .column = "trace", .text = trace },
	{ "ip", TALLY_FIELD_IP, TALLY_SAMPLE_IP, "IP" },
	{ "sym", TALLY_FIELD_SYMBOL },
	{ "symoff", TALLY_FIELD_OFFSET },
	{ "dso", TALLY_FIELD_OBJECT },
	{ "addr", ADDR, TALLY_SAMPLE_ADDR, "ADDR", "addr", .text = address,
	  .spot = TALLY_SPOT_BEFORE, .put = put_address },
	{ "srcline", TALLY_FIELD_LINE },
	{ "symline", TALLY_FIELD_LINE },
	{ "period", TALLY_FIELD_PERIOD, .column = "period", .number = period },
	{ "iregs", REGS_INTR, TALLY_SAMPLE_REGS_INTR, "IREGS", "iregs", .spot = TALLY_SPOT_AFTER,
	  .put = put_regs_intr },
	{ "uregs", REGS_USER, TALLY_SAMPLE_REGS_USER, "UREGS", "uregs", .spot = TALLY_SPOT_AFTER,
	  .put = put_regs_user },
	{ "brstack", BRANCHES, TALLY_SAMPLE_BRANCH_STACK, NULL, "brstack", .spot = TALLY_SPOT_AFTER,
	  .put = put_branch_addresses },
	{ "brstacksym", BRANCH_SYMBOLS, TALLY_SAMPLE_BRANCH_STACK, NULL, "brstacksym",
	  .spot = TALLY_SPOT_AFTER, .put = put_branch_symbols },
	{ "flags", TALLY_FIELD_FLAGS },
	{ "phys_addr", PHYS_ADDR, TALLY_SAMPLE_PHYS_ADDR, "PHYS_ADDR", "phys_addr",
	  .text = physical, .spot = TALLY_SPOT_END, .put = put_physical },
	{ "weight", WEIGHT, TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT, "WEIGHT", "weight",
	  .number = weight, .spot = TALLY_SPOT_BEFORE },
	{ "misc", TALLY_FIELD_MISC, .column = "misc", .text = misc },
	{ "cgroup", CGROUP, TALLY_SAMPLE_CGROUP, "CGROUP", "cgroup", .spot = TALLY_SPOT_END,
	  .put = put_cgroup },
	{ "data_page_size", DATA_PAGE_SIZE, TALLY_SAMPLE_DATA_PAGE_SIZE, "DATA_PAGE_SIZE",
	  "data_page_size", .number = data_page, .spot = TALLY_SPOT_END, .put = put_data_page },
	{ "data_src", DATA_SOURCE, TALLY_SAMPLE_DATA_SRC, "DATA_SRC", "data_src", .text = data_bits,
	  .spot = TALLY_SPOT_BEFORE, .put = put_data_source },
	{ NULL, DATA_SOURCE, TALLY_SAMPLE_DATA_SRC, "DATA_SRC", "data_source", .text = data_words },
	{ "ins_lat", LATENCY, TALLY_SAMPLE_WEIGHT_STRUCT, "WEIGHT_STRUCT", "ins_lat",
	  .number = latency, .spot = TALLY_SPOT_BEFORE },
	{ "bpf-output", BPF_OUTPUT, TALLY_SAMPLE_RAW, "RAW", "bpf_output", .text = bpf_output,
	  .spot = TALLY_SPOT_AFTER, .put = put_bpf_output, .has_lines = true },
	{ "tod", TALLY_FIELD_WALL_TIME, TALLY_SAMPLE_TIME, "TIME", "tod", .text = wall_time },
	{ "stack", TALLY_FIELD_STACK },
	/* only decoders of instruction traces have these */
	{ "synth", 0 },
	{ "callindent", 0 },
	{ "ipc", 0 },
	{ "code_page_size", CODE_PAGE_SIZE, TALLY_SAMPLE_CODE_PAGE_SIZE, "CODE_PAGE_SIZE",
	  "code_page_size", .number = code_page, .spot = TALLY_SPOT_END, .put = put_code_page },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
_Static_assert(sizeof(rows) / sizeof(rows[0]) <= TALLY_SCRIPT_ROWS_MAX, "a list has all rows");

size_t tally_script_columns(const struct tally_script_row **out)
{
	size_t count = 0;
	for (unsigned bit = 0; bit < 32; bit++)
		for (unsigned i = 0; i < ROWS; i++)
			if (rows[i].bit == UINT32_C(1) << bit && rows[i].column)
				out[count++] = &rows[i];
	return count;
}

size_t tally_script_spot_rows(enum tally_script_spot spot, const struct tally_script_row **out)
{
	size_t count = 0;
	for (unsigned bit = 0; bit < 32; bit++)
		for (unsigned i = 0; i < ROWS; i++)
			if (rows[i].bit == UINT32_C(1) << bit && rows[i].spot == spot)
				out[count++] = &rows[i];
	return count;
}

void tally_script_column_text(const struct tally_script_row *row,
			      const struct tally_script_cell *cell, struct tally_buffer *out)
{
	if (row->text) {
		row->text(cell, out);
	} else {
		row->put(cell, out);
		trim(out);
	}
}

void tally_script_row_text(const struct tally_script_row *row, const struct tally_script_cell *cell,
			   struct tally_buffer *out)
{
	if (row->put)
		row->put(cell, out);
	else
		tally_buffer_printf(out, "%16" PRIu64, row->number(cell));
}

void tally_script_fields_init(struct tally_script_fields *fields, enum tally_script_layout layout)
{
	uint32_t usual = USUAL | TALLY_FIELD_PERIOD | PLACE;
	uint32_t of_tracepoints = USUAL | TALLY_FIELD_TRACE;
	if (layout == TALLY_SCRIPT_CSV)
		usual = OF_ALL | TALLY_FIELD_STACK;
	else if (layout != TALLY_SCRIPT_TEXT)
		usual = OF_ALL | PLACE | TALLY_FIELD_LINE | MEMORY;
	if (layout != TALLY_SCRIPT_TEXT)
		of_tracepoints = usual | TALLY_FIELD_TRACE;
	*fields = (struct tally_script_fields){ .layout = layout };
	for (unsigned type = 0; type < TALLY_SCRIPT_TYPES; type++)
		fields->types[type].shown = usual;
	fields->types[TALLY_TYPE_TRACEPOINT].shown = of_tracepoints;
	if (layout != TALLY_SCRIPT_TEXT)
		return;
	fields->types[TALLY_TYPE_SOFTWARE].shown |= BPF_OUTPUT;
	fields->types[TALLY_TYPE_RAW].shown |= MEMORY;
}

/* ---- -F ------------------------------------------------------------------ */

/* Returns the types that a list applies to, as bits, and moves `*text` past "sw:". 0: unknown
 * type. */
static unsigned take_type(const char **text, struct tally_error *err)
{
	static const struct { const char *name; unsigned type;
	} types[] = {
		{ "hw", TALLY_TYPE_HARDWARE },      { "sw", TALLY_TYPE_SOFTWARE },
		{ "trace", TALLY_TYPE_TRACEPOINT }, { "raw", TALLY_TYPE_RAW },
		{ "break", TALLY_TYPE_BREAKPOINT },
	};
	const char *colon = strchr(*text, ':');
	if (!colon)
		return ALL_TYPES;
	size_t length = (size_t)(colon - *text);
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].name) == length && !strncmp(types[i].name, *text, length)) {
			*text = colon + 1;
			return 1u << types[i].type;
		}
	tally_error_set(err, -EINVAL, "option -F: unknown event type '%.*s'", (int)length, *text);
	tally_error_hint(
		err,
		"types are hw, sw, trace, raw and break, one per option: -F trace:time,trace -F "
		"sw:comm");
	return 0;
}

/* Lists the fields that show something, each once. */
static void hint_fields(struct tally_error *err)
{
	struct tally_buffer list = { 0 };
	uint32_t listed = 0;
	for (unsigned i = 0; i < ROWS; i++) {
		if (rows[i].name && rows[i].bit & ~listed)
			tally_buffer_printf(&list, "%s%s%s", listed ? ", " : "", rows[i].name,
					    rows[i].bit == TALLY_FIELD_STACK ? " (--csv)" : "");
		listed |= rows[i].bit;
	}
	tally_error_hint(err, "fields are %s", tally_buffer_string(&list));
	tally_buffer_release(&list);
}

static void unknown_field(const char *text, size_t length, struct tally_error *err)
{
	char typed[64];
	struct tally_nearest nearest;
	snprintf(typed, sizeof(typed), "%.*s", length < sizeof(typed) ? (int)length : 0, text);
	tally_nearest_init(&nearest, typed);
	for (unsigned i = 0; i < ROWS; i++)
		if (rows[i].name)
			tally_nearest_try(&nearest, rows[i].name);
	tally_error_set(err, -EINVAL, "option -F: there is no field '%.*s'", (int)length, text);
	if (*nearest.name)
		tally_error_hint(err, "did you mean '%s'?", nearest.name);
	else
		hint_fields(err);
}

static const struct tally_script_row *find_field(const char *text, size_t length,
						 struct tally_error *err)
{
	static const char *const others[] = { "brstackinsn", "brstackinsnlen", "brstackoff",
					      "insn",        "insnlen",        "metric",
					      "srccode",     "machine_pid",    "vcpu" };
	for (unsigned i = 0; i < ROWS; i++)
		if (rows[i].name && strlen(rows[i].name) == length &&
		    !strncmp(rows[i].name, text, length))
			return &rows[i];
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strlen(others[i]) == length && !strncmp(others[i], text, length)) {
			tally_error_set(
				err, -EINVAL,
				"option -F: tally does not show perf's field '%s'",
				others[i]);
			tally_error_hint(
				err,
				"tally script --records shows all that a sample contains; perf "
				"script reads the recording as well");
			return NULL;
		}
	unknown_field(text, length, err);
	return NULL;
}

/* Finds a field; fails if only some of the list's fields have a sign. */
static int take_field(const char *text, size_t length, bool has_signs,
		      const struct tally_script_row **out, struct tally_error *err)
{
	bool is_signed = *text == '+' || *text == '-';
	if (is_signed != has_signs)
		return tally_error_set(
			err, -EINVAL,
			"option -F: fields with + or - can't be in one list with '%.*s'",
			(int)length, text);
	*out = find_field(text + is_signed, length - is_signed, err);
	if (*out)
		return 0;
	return -EINVAL;
}

static void apply(struct tally_script_type_fields *type, uint32_t bit, char sign)
{
	if (sign == '-') {
		type->shown &= ~bit;
		type->asked &= ~bit;
		if (bit == TALLY_FIELD_SYMBOL) /* without a symbol, there is no offset from it */
			type->shown &= ~(uint32_t)TALLY_FIELD_OFFSET;
		return;
	}
	type->shown |= bit;
	type->asked |= bit;
}

/* Checks that the remaining fields make sense together. */
static int check_type(const struct tally_script_type_fields *type, struct tally_error *err)
{
	uint32_t shown = type->shown;
	if (shown & TALLY_FIELD_OFFSET && !(shown & TALLY_FIELD_SYMBOL))
		return tally_error_set(
			err, -EINVAL,
			"option -F: symoff is the distance from a symbol: it needs sym");
	if (shown & TALLY_FIELD_LINE && !(shown & TALLY_FIELD_IP))
		return tally_error_set(err, -EINVAL,
				       "option -F: srcline is the line of an address: it needs ip");
	return 0;
}

int tally_script_fields_parse(struct tally_script_fields *fields, const char *text,
			      struct tally_error *err)
{
	unsigned types = take_type(&text, err), shown_types = 0;
	bool has_signs = strchr(text, '+') || text[0] == '-' || strstr(text, ",-");
	if (!types)
		return -EINVAL;
	for (unsigned type = 0; type < TALLY_SCRIPT_TYPES; type++) {
		if (!(types >> type & 1))
			continue;
		if (!has_signs)
			fields->types[type] = (struct tally_script_type_fields){ 0 };
		fields->types[type].is_set = true;
	}
	for (size_t length; *text; text += length + (text[length] == ',')) {
		const struct tally_script_row *field = NULL;
		length = strcspn(text, ",");
		if (!length)
			continue;
		if (take_field(text, length, has_signs, &field, err) < 0)
			return -EINVAL;
		if (field->bit == TALLY_FIELD_STACK && fields->layout != TALLY_SCRIPT_CSV)
			return tally_error_set(
				err, -EINVAL,
				"option -F: stack is a column of --csv; elsewhere ip and sym show "
				"it");
		/* A list without a type sets a field that only tracepoints have for tracepoints
		 * alone. */
		bool is_tracing = field->bit == TALLY_FIELD_TRACE;
		if (is_tracing && types != ALL_TYPES && types != TRACEPOINTS)
			return tally_error_set(err, -EINVAL,
					       "option -F: only tracepoints have the field trace");
		for (unsigned type = 0; type < TALLY_SCRIPT_TYPES; type++)
			if (types >> type & 1 && !(is_tracing && type != TALLY_TYPE_TRACEPOINT))
				apply(&fields->types[type], field->bit, *text);
	}
	for (unsigned type = 0; type < TALLY_SCRIPT_TYPES; type++) {
		shown_types += fields->types[type].shown != 0;
		/* With + and -, a field may lack what it needs in some types: a tracepoint has no
		 * address. */
		if (!has_signs && check_type(&fields->types[type], err) < 0)
			return -EINVAL;
	}
	if (shown_types)
		return 0;
	return tally_error_set(err, -EINVAL, "option -F: no field is left to show");
}

/* ---- events -------------------------------------------------------------- */

int tally_script_fields_of(const struct tally_script_fields *fields,
			   const struct tally_recorded_event *event, uint32_t *shown,
			   struct tally_error *err)
{
	uint32_t number = TALLY_SCRIPT_TYPE_OTHER;
	if (event->attr.type < TALLY_SCRIPT_TYPE_OTHER)
		number = event->attr.type;
	const struct tally_script_type_fields *type = &fields->types[number];
	bool has_stacks = tally_recording_has_stacks(&event->attr);
	bool has_samples = number != TALLY_TYPE_SOFTWARE || event->attr.config != TALLY_SW_DUMMY;
	*shown = type->shown;
	/* Only a tracepoint's stack says where it was hit. */
	if (fields->layout == TALLY_SCRIPT_TEXT && number == TALLY_TYPE_TRACEPOINT &&
	    !type->is_set && has_stacks && !fields->no_stacks)
		*shown |= PLACE;
	if (!(number == TALLY_TYPE_SOFTWARE && event->attr.config == TALLY_SW_BPF_OUTPUT))
		*shown &= ~(uint32_t)BPF_OUTPUT;
	for (unsigned i = 0; i < ROWS; i++) {
		const struct tally_script_row *field = &rows[i];
		if (!(*shown & field->bit))
			continue;
		bool is_there = !field->attribute || event->attr.sample_type & field->sample_type ||
				(field->bit == TALLY_FIELD_IP && has_stacks);
		if (is_there)
			continue;
		if (!(type->asked & field->bit) || !has_samples) {
			*shown &= ~field->bit;
			continue;
		}
		tally_error_set(err, -ENODATA,
				"samples of %s have no %s: the field '%s' can't be shown",
				event->name, field->attribute, field->name);
		tally_error_hint(
			err,
			"record it ('tally record --help' has the options), or leave it out with "
			"-F -%s",
			field->name);
		return -ENODATA;
	}
	return 0;
}

#include "output/script_fields.h"

#include "base/suggest.h"
#include "recording/recording.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	OF_ALL = TALLY_FIELD_COMM | TALLY_FIELD_PID | TALLY_FIELD_TID | TALLY_FIELD_CPU |
		 TALLY_FIELD_TIME | TALLY_FIELD_EVENT | TALLY_FIELD_PERIOD,
	USUAL = TALLY_FIELD_COMM | TALLY_FIELD_TID | TALLY_FIELD_CPU | TALLY_FIELD_TIME |
		TALLY_FIELD_EVENT,
	PLACE = TALLY_FIELD_IP | TALLY_FIELD_SYMBOL | TALLY_FIELD_OFFSET | TALLY_FIELD_OBJECT,
	ALL_TYPES = (1 << TALLY_SCRIPT_TYPES) - 1,
	TRACEPOINTS = 1 << TALLY_TYPE_TRACEPOINT,
	MEMORY = TALLY_FIELD_ADDR | TALLY_FIELD_DATA_SOURCE | TALLY_FIELD_WEIGHT |
		 TALLY_FIELD_LATENCY | TALLY_FIELD_PHYS_ADDR | TALLY_FIELD_DATA_PAGE_SIZE |
		 TALLY_FIELD_CODE_PAGE_SIZE,
};

struct field {
	const char *name;
	/* 0: accepted but never shown; only decoders of instruction traces have it */
	uint32_t bit;
	/* attr.sample_type must have one of these bits; 0: no requirement */
	uint64_t sample_type;
	const char *attribute; /* perf's name for it */
};

static const struct field known_fields[] = {
	{ "comm", TALLY_FIELD_COMM, 0, NULL },
	{ "tid", TALLY_FIELD_TID, TALLY_SAMPLE_TID, "TID" },
	{ "pid", TALLY_FIELD_PID, TALLY_SAMPLE_TID, "PID" },
	{ "time", TALLY_FIELD_TIME, TALLY_SAMPLE_TIME, "TIME" },
	{ "cpu", TALLY_FIELD_CPU, TALLY_SAMPLE_CPU, "CPU" },
	{ "event", TALLY_FIELD_EVENT, 0, NULL },
	{ "trace", TALLY_FIELD_TRACE, 0, NULL },
	{ "ip", TALLY_FIELD_IP, TALLY_SAMPLE_IP, "IP" },
	{ "sym", TALLY_FIELD_SYMBOL, 0, NULL },
	{ "symoff", TALLY_FIELD_OFFSET, 0, NULL },
	{ "dso", TALLY_FIELD_OBJECT, 0, NULL },
	{ "addr", TALLY_FIELD_ADDR, TALLY_SAMPLE_ADDR, "ADDR" },
	{ "srcline", TALLY_FIELD_LINE, 0, NULL },
	{ "symline", TALLY_FIELD_LINE, 0, NULL },
	{ "period", TALLY_FIELD_PERIOD, 0, NULL },
	{ "iregs", TALLY_FIELD_REGS_INTR, TALLY_SAMPLE_REGS_INTR, "IREGS" },
	{ "uregs", TALLY_FIELD_REGS_USER, TALLY_SAMPLE_REGS_USER, "UREGS" },
	{ "brstack", TALLY_FIELD_BRANCHES, 0, NULL },
	{ "brstacksym", TALLY_FIELD_BRANCH_SYMBOLS, 0, NULL },
	{ "flags", TALLY_FIELD_FLAGS, 0, NULL },
	{ "phys_addr", TALLY_FIELD_PHYS_ADDR, TALLY_SAMPLE_PHYS_ADDR, "PHYS_ADDR" },
	{ "weight", TALLY_FIELD_WEIGHT, TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT,
	  "WEIGHT" },
	{ "misc", TALLY_FIELD_MISC, 0, NULL },
	{ "cgroup", TALLY_FIELD_CGROUP, TALLY_SAMPLE_CGROUP, "CGROUP" },
	{ "data_page_size", TALLY_FIELD_DATA_PAGE_SIZE, TALLY_SAMPLE_DATA_PAGE_SIZE,
	  "DATA_PAGE_SIZE" },
	{ "data_src", TALLY_FIELD_DATA_SOURCE, TALLY_SAMPLE_DATA_SRC, "DATA_SRC" },
	{ "ins_lat", TALLY_FIELD_LATENCY, TALLY_SAMPLE_WEIGHT_STRUCT, "WEIGHT_STRUCT" },
	{ "bpf-output", TALLY_FIELD_BPF_OUTPUT, TALLY_SAMPLE_RAW, "RAW" },
	{ "tod", TALLY_FIELD_WALL_TIME, TALLY_SAMPLE_TIME, "TIME" },
	{ "stack", TALLY_FIELD_STACK, 0, NULL },
	{ "synth", 0, 0, NULL },
	{ "callindent", 0, 0, NULL },
	{ "ipc", 0, 0, NULL },
	{ "code_page_size", TALLY_FIELD_CODE_PAGE_SIZE, TALLY_SAMPLE_CODE_PAGE_SIZE,
	  "CODE_PAGE_SIZE" },
};

enum { FIELDS = sizeof(known_fields) / sizeof(known_fields[0]) };

static const char LIST[] =
	"comm, tid, pid, time, cpu, event, trace, ip, sym, symoff, dso, addr, srcline, period, iregs, "
	"uregs, brstack, brstacksym, flags, phys_addr, weight, ins_lat, data_src, misc, cgroup, "
	"data_page_size, code_page_size, bpf-output, tod, and stack of --csv";

void tally_script_fields_init(struct tally_script_fields *fields, enum tally_script_layout layout)
{
	*fields = (struct tally_script_fields){ .layout = layout };
	for (unsigned type = 0; layout != TALLY_SCRIPT_TEXT && type < TALLY_SCRIPT_TYPES; type++)
		fields->types[type].shown = OF_ALL |
					    (type == TALLY_TYPE_TRACEPOINT ? TALLY_FIELD_TRACE
									   : 0) |
					    (layout == TALLY_SCRIPT_CSV
						     ? TALLY_FIELD_STACK
						     : PLACE | TALLY_FIELD_LINE | MEMORY);
	if (layout != TALLY_SCRIPT_TEXT)
		return;
	for (unsigned type = 0; type < TALLY_SCRIPT_TYPES; type++)
		fields->types[type].shown = type == TALLY_TYPE_TRACEPOINT
						    ? USUAL | TALLY_FIELD_TRACE
						    : USUAL | TALLY_FIELD_PERIOD | PLACE;
	fields->types[TALLY_TYPE_SOFTWARE].shown |= TALLY_FIELD_BPF_OUTPUT;
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
		"types are hw, sw, trace, raw and break, one per option: -F trace:time,trace -F sw:comm");
	return 0;
}

static void unknown_field(const char *text, size_t length, struct tally_error *err)
{
	char typed[64];
	struct tally_nearest nearest;
	snprintf(typed, sizeof(typed), "%.*s", length < sizeof(typed) ? (int)length : 0, text);
	tally_nearest_init(&nearest, typed);
	for (unsigned i = 0; i < FIELDS; i++)
		tally_nearest_try(&nearest, known_fields[i].name);
	tally_error_set(err, -EINVAL, "option -F: there is no field '%.*s'", (int)length, text);
	if (*nearest.name)
		tally_error_hint(err, "did you mean '%s'?", nearest.name);
	else
		tally_error_hint(err, "fields are %s", LIST);
}

static const struct field *find_field(const char *text, size_t length, struct tally_error *err)
{
	static const char *const others[] = { "brstackinsn", "brstackinsnlen", "brstackoff",
					      "insn",        "insnlen",        "metric",
					      "srccode",     "machine_pid",    "vcpu" };
	for (unsigned i = 0; i < FIELDS; i++)
		if (strlen(known_fields[i].name) == length &&
		    !strncmp(known_fields[i].name, text, length))
			return &known_fields[i];
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
static int take_field(const char *text, size_t length, bool has_signs, const struct field **out,
		      struct tally_error *err)
{
	bool is_signed = *text == '+' || *text == '-';
	if (is_signed != has_signs)
		return tally_error_set(
			err, -EINVAL,
			"option -F: fields with + or - can't be in one list with '%.*s'",
			(int)length, text);
	*out = find_field(text + is_signed, length - is_signed, err);
	return *out ? 0 : -EINVAL;
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
		const struct field *field = NULL;
		length = strcspn(text, ",");
		if (!length)
			continue;
		if (take_field(text, length, has_signs, &field, err) < 0)
			return -EINVAL;
		/* A list without a type sets a field that only tracepoints have for tracepoints
		 * alone. */
		if (field->bit == TALLY_FIELD_STACK && fields->layout != TALLY_SCRIPT_CSV)
			return tally_error_set(
				err, -EINVAL,
				"option -F: stack is a column of --csv; elsewhere ip and sym show it");
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
	return shown_types ? 0
			   : tally_error_set(err, -EINVAL,
					     "option -F: no field is left to show");
}

/* ---- events -------------------------------------------------------------- */

int tally_script_fields_of(const struct tally_script_fields *fields,
			   const struct tally_recorded_event *event, uint32_t *shown,
			   struct tally_error *err)
{
	uint32_t number = event->attr.type < TALLY_SCRIPT_TYPE_OTHER ? event->attr.type
								     : TALLY_SCRIPT_TYPE_OTHER;
	const struct tally_script_type_fields *type = &fields->types[number];
	bool has_stacks = tally_recording_has_stacks(&event->attr);
	bool has_samples = number != TALLY_TYPE_SOFTWARE || event->attr.config != TALLY_SW_DUMMY;
	*shown = type->shown;
	/* Only a tracepoint's stack says where it was hit. */
	if (fields->layout == TALLY_SCRIPT_TEXT && number == TALLY_TYPE_TRACEPOINT &&
	    !type->is_set && has_stacks)
		*shown |= PLACE;
	if (!(number == TALLY_TYPE_SOFTWARE && event->attr.config == TALLY_SW_BPF_OUTPUT))
		*shown &= ~(uint32_t)TALLY_FIELD_BPF_OUTPUT;
	for (unsigned i = 0; i < FIELDS; i++) {
		const struct field *field = &known_fields[i];
		if (!(*shown & field->bit))
			continue;
		bool is_there = !field->sample_type ||
				event->attr.sample_type & field->sample_type ||
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

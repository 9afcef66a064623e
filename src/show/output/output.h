/* Outputs of recordings, one function each. */
#ifndef TALLY_OUTPUT_H
#define TALLY_OUTPUT_H

#include "base/buffer.h"
#include "base/digits.h"
#include "base/error.h"
#include "base/json.h"
#include "diff/diff.h"
#include "event/event.h"
#include "machine/machine.h"
#include "perfdata/perfdata.h"
#include "profile/stacks.h"
#include "recording/recording.h"
#include "report/report.h"
#include "timeline/timeline.h"

#include <stdbool.h>
#include <stdint.h>

struct tally_script;
struct tally_script_json;

/* A report as text and as JSON (schema in docs/report-json.md). */

struct tally_report_view {
	unsigned columns; /* terminal width; 0: unlimited */
	bool colours;
	bool ascii; /* no box-drawing characters */
	bool errors; /* show columns of sampling errors */
	const char *hint; /* printed below the head, with escapes neutralised; NULL: none */
};

void tally_report_text(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options,
		       const struct tally_report_view *view, struct tally_buffer *out);

/* Appends what was measured and how, without a newline. */
void tally_report_head(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options,
		       const struct tally_report_view *view, struct tally_buffer *out);

/* Writes one object for one event's report. */
void tally_report_json(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options, struct tally_json *json);

/* The text of a report's cells, with terminal escapes neutralised. */

enum { TALLY_REPORT_CELL_BYTES = 1024 };

/* Terminals of this width have room for columns of errors. */
enum { TALLY_REPORT_ERROR_COLUMNS = 120 };

/* Writes "main", "schedule [k]", or "[libc.so.6]" for a place without a symbol; UINT32_MAX: the
 * samples have no address. */
void tally_report_function(const struct tally_names *names, uint32_t function, char *out,
			   size_t size);

/* Writes an entry's text in the column of a key. */
void tally_report_cell(const struct tally_names *names, const struct tally_report_entry *entry,
		       enum tally_sort_key key, char *out, size_t size);

/* Columns of a report of waits: total time, number, mean and maximum; with callees included if the
 * report has totals. */
enum { TALLY_WAIT_COLUMNS = 4, TALLY_WAIT_WIDTH = 10 };

/* Terminals of this width have room for them and for both shares. */
enum { TALLY_REPORT_WAIT_COLUMNS = 110 };

/* All of these columns are right-aligned. */
const char *tally_report_wait_title(unsigned column);
void tally_report_wait_cell(const struct tally_report_entry *entry, bool of_total, unsigned column,
			    char *out, size_t size);

/* True if a key has a column. If there is only one command, the head names it instead. */
bool tally_report_is_column(const struct tally_report *report,
			    const struct tally_report_options *options, enum tally_sort_key key);

/* True if the key's column may be narrowed. */
bool tally_report_key_shrinks(enum tally_sort_key key);

/* Shows what changed between two sides' stacks: a table for people, Markdown for a pull request,
 * JSON for programs. */

enum { TALLY_DIFF_JSON_VERSION = 1 };

struct tally_diff_view {
	const struct tally_match *match;
	const struct tally_diff_options *options;
	const char *const *old_paths, *const *new_paths; /* one path for each run */
	unsigned columns; /* terminal width; 0: unlimited */
	bool colours, ascii;
	const struct tally_diff_verdict *verdicts; /* results of --fail-if's conditions */
	size_t verdict_count;
};

void tally_diff_table(const struct tally_diff *diff, const struct tally_diff_view *view,
		      struct tally_buffer *out);
void tally_diff_markdown(const struct tally_diff *diff, const struct tally_diff_view *view,
			 struct tally_buffer *out);
/* docs/diff.md has the schema. */
void tally_diff_json(const struct tally_diff *diff, const struct tally_diff_view *view,
		     struct tally_buffer *out);

/* Appends a warning to be read before the table, with a newline; nothing if there is none. */
void tally_diff_warning(const struct tally_diff *diff, struct tally_buffer *out);

/* `tally doctor` as text and as JSON. */

struct tally_doctor_style {
	bool utf8;    /* marks are ✓ ! ✗, otherwise ok ! x */
	bool colours;
};

void tally_doctor_text(const struct tally_machine_facts *facts,
		       const struct tally_findings *findings,
		       const struct tally_doctor_style *style, struct tally_buffer *out);

/* docs/doctor.md describes the schema. */
void tally_doctor_json(const struct tally_machine_facts *facts,
		       const struct tally_findings *findings, struct tally_buffer *out);

/* `tally list`: the events that can be named, for a terminal, for a pipe, and as JSON. */

struct tally_listed_field { /* a field of a tracepoint's record */
	const char *name, *type; /* "prev_comm", "char[16]" */
	unsigned offset, size;
	bool is_signed;
};

struct tally_listed_event {
	enum tally_event_kind kind;
	const char *name;
	const char *alias;       /* or NULL */
	const char *description; /* or NULL */
	const char *unavailable; /* why it can't be counted here, or NULL */
	const char *parent;      /* the PMU's name or the tracepoint's system; otherwise NULL */
	const struct tally_pmu *pmu;
	/* event of `pmu`; NULL: the entry stands for the PMU's terms */
	const struct tally_pmu_alias *pmu_event;
	bool is_form;            /* a pattern like "rNNN", to be filled in before use */
	const struct tally_listed_field *fields; /* NULL unless requested */
	size_t field_count;
};

struct tally_event_listing {
	/* sorted by kind, in the order of enum tally_event_kind */
	const struct tally_listed_event *events;
	size_t count;
	const char *tracepoints_unavailable; /* why there are none, or NULL */
};

struct tally_event_list_style {
	bool terminal; /* headings and columns; otherwise one event per line, its name first */
	bool colours;
	bool summary;  /* tracepoints as systems with their numbers of events */
	unsigned columns;
};

void tally_event_list_text(const struct tally_event_listing *listing,
			   const struct tally_event_list_style *style, struct tally_buffer *out);

/* docs/list.md describes the schema. */
void tally_event_list_json(const struct tally_event_listing *listing, struct tally_buffer *out);

/* Appends bit numbers as ranges: "0-7,32-35". */
void tally_event_list_bits(uint64_t mask, struct tally_buffer *out);

/* Reads the fields from the text of a tracepoint's format file, without those that every tracepoint
 * has. Returns 0 or -ENOMEM. */
int tally_event_list_fields(const char *format, struct tally_arena *arena,
			    struct tally_listed_event *event);

/* Folded text in the format of the stackcollapse scripts: "comm;root;…;leaf WEIGHT", sorted by
 * bytes. */

struct tally_folded_options {
	bool with_pid, with_tid; /* "comm-PID", "comm-PID/TID"; '?' for an unknown pid */
	bool suffix_kernel, suffix_jit, suffix_inlined; /* _[k] _[j] _[i] */
	/* Keep quotes and all parameter lists. Otherwise quotes are dropped, and parameter lists
	 * where the name stays unique, as stackcollapse-perf.pl does. */
	bool full_names;
	bool by_samples; /* weigh by samples instead of periods, where samples are counted */
};

/* Appends to `out`; equal lines are merged. Returns 0 or -ENOMEM. */
int tally_folded_write(const struct tally_stacks *stacks,
		       const struct tally_folded_options *options, struct tally_buffer *out,
		       struct tally_error *err);

/* Times as `script` shows them: by the recording's clock; since the first time shown (perf script's
 * --reltime); or since the previous one (--deltatime). In microseconds, with --ns in
 * nanoseconds. */

struct tally_script_clock {
	bool nanoseconds, since_first, since_last; /* at most one of the last two is set */
	uint64_t reference_ns; /* the time subtracted; 0: nothing has been shown yet */
};

/* Writes "12345.678901: " without a NUL. Returns the end. */
char *tally_script_time(struct tally_script_clock *clock, char *at, uint64_t time_ns);

/* Writes "12345.678901", the default format; optimised for millions of samples. */
static inline char *tally_script_seconds(char *at, uint64_t time_ns)
{
	uint32_t fraction = (uint32_t)(time_ns % 1000000000 / 1000);
	at = tally_put_decimal(at, time_ns / 1000000000, 5);
	*at++ = '.';
	memcpy(at, tally_digit_pairs + 2 * (fraction / 10000), 2);
	memcpy(at + 2, tally_digit_pairs + 2 * (fraction / 100 % 100), 2);
	memcpy(at + 4, tally_digit_pairs + 2 * (fraction % 100), 2);
	return at + 6;
}

/* For the field tod: stores what to add to a sample's time to get wall-clock time. Returns 0, or
 * -ENODATA if the recording lacks it. */
int tally_script_wall_offset(const struct tally_recording *recording, uint64_t *offset_ns,
			     struct tally_error *err);
enum { TALLY_SCRIPT_WALL_TIME_MAX = 40 };
/* Writes "2026-11-22 12:12:12.326022", optionally to the nanosecond, without a NUL: at most
 * TALLY_SCRIPT_WALL_TIME_MAX bytes. Returns the end. */
char *tally_script_wall_time(char *at, uint64_t time_ns, bool nanoseconds);

/* The fields that `script` shows of a sample: perf script's -F (perf-script(1), FIELDS).
 *
 * Each type of event (hardware, software, tracepoints …) has its own set: "-F trace:time,trace -F
 * sw:comm". A list without a type applies to all types. A requested field that an event's samples
 * lack is an error; a default field that they lack is left out.
 */

/* Fields that layouts treat in a special way; script_fields.c has the others.  Columns are in the
 * order of the bits. */
enum tally_script_field {
	TALLY_FIELD_COMM = 1 << 0,
	TALLY_FIELD_PID = 1 << 1,
	TALLY_FIELD_TID = 1 << 2,
	TALLY_FIELD_CPU = 1 << 3,
	TALLY_FIELD_TIME = 1 << 4,
	TALLY_FIELD_EVENT = 1 << 5,
	TALLY_FIELD_PERIOD = 1 << 6,
	TALLY_FIELD_TRACE = 1 << 7,
	TALLY_FIELD_MISC = 1 << 8,
	TALLY_FIELD_WALL_TIME = 1 << 9,
	TALLY_FIELD_FLAGS = 1 << 10,
	TALLY_FIELD_STACK = 1 << 11, /* CSV: the stack's names in one column */
	TALLY_FIELD_IP = 1 << 12,
	TALLY_FIELD_SYMBOL = 1 << 13,
	TALLY_FIELD_OFFSET = 1 << 14,
	TALLY_FIELD_OBJECT = 1 << 15,
	TALLY_FIELD_LINE = 1 << 16,
	TALLY_FIELDS_SPECIAL = 17 /* number of these bits */
};

/* The sample that tally_recording_next() returned last. */
struct tally_script_cell {
	struct tally_recording *recording;
	const struct tally_recorded_event *event;
	const struct tally_record *record;
	const char *trace;    /* a tracepoint's text */
	uint64_t wall_offset; /* tally_script_wall_offset() */
	bool nanoseconds;     /* show wall-clock time in nanoseconds */
	/* In text: the fields shown, and the width of the widest data_src so far. */
	uint32_t shown;
	size_t *source_width;
};

/* The spot of a field's text: before or after the sample's address or stack. */
enum tally_script_spot {
	TALLY_SPOT_NONE, /* in the line's head or the stack, or not in text */
	TALLY_SPOT_BEFORE,
	TALLY_SPOT_AFTER,
	TALLY_SPOT_END
};

struct tally_script_row {
	const char *name; /* in -F; NULL: one more column of the field above */
	uint32_t bit;     /* 0: accepted but never shown */
	/* attr.sample_type must have one of these bits; 0: no requirement */
	uint64_t sample_type;
	const char *attribute; /* perf's name for it, for an error; NULL: lacking it is no error */

	/* JSON's key and CSV's column, and its value: at most one of these functions is set.  NULL:
	 * there is none. */
	const char *column;
	int64_t (*signed_number)(const struct tally_script_cell *cell);
	uint64_t (*number)(const struct tally_script_cell *cell);
	void (*text)(const struct tally_script_cell *cell, struct tally_buffer *out);

	/* In perf's layout.  `put` NULL: the number, in 16 columns.  A row with a column but
	 * without a function above uses the text of `put`, without blanks around it. */
	enum tally_script_spot spot;
	void (*put)(const struct tally_script_cell *cell, struct tally_buffer *out);
	bool has_lines; /* `put` puts whole lines, in which all text is printable */
};

/* The output format; each has its own default fields. */
enum tally_script_layout { TALLY_SCRIPT_TEXT, TALLY_SCRIPT_JSON, TALLY_SCRIPT_CSV };

/* perf_event's types; dynamic PMUs' events are OTHER. */
enum { TALLY_SCRIPT_TYPE_OTHER = 6, TALLY_SCRIPT_TYPES };

struct tally_script_fields {
	enum tally_script_layout layout;
	bool no_stacks; /* show only the sampled address */
	struct tally_script_clock *clock; /* NULL: the recording's clock, in microseconds */
	struct tally_script_type_fields {
		uint32_t shown;
		/* fields in `shown` that were requested by name and so must exist */
		uint32_t asked;
		/* -F was given: tracepoints then show no stacks by default */
		bool is_set;
	} types[TALLY_SCRIPT_TYPES];
};

/* Sets the defaults, without -F. */
void tally_script_fields_init(struct tally_script_fields *fields, enum tally_script_layout layout);

/* Parses one "[TYPE:]FIELD,…" or "[TYPE:]+FIELD,-FIELD,…". Returns 0 or -EINVAL. */
int tally_script_fields_parse(struct tally_script_fields *fields, const char *text,
			      struct tally_error *err);

/* Stores which fields to show of an event's samples. Returns 0, or -ENODATA if they lack a
 * requested field. */
int tally_script_fields_of(const struct tally_script_fields *fields,
			   const struct tally_recorded_event *event, uint32_t *shown,
			   struct tally_error *err);

/* In the order of the bits: stores the rows of the columns, or of the fields at a spot.  `out` has
 * room for TALLY_SCRIPT_ROWS_MAX.  Returns their number. */
enum { TALLY_SCRIPT_ROWS_MAX = 40 };
size_t tally_script_columns(const struct tally_script_row **out);
size_t tally_script_spot_rows(enum tally_script_spot spot, const struct tally_script_row **out);

/* Appends the text of a row's column, or the text of a row in perf's layout. */
void tally_script_column_text(const struct tally_script_row *row,
			      const struct tally_script_cell *cell, struct tally_buffer *out);
void tally_script_row_text(const struct tally_script_row *row, const struct tally_script_cell *cell,
			   struct tally_buffer *out);

enum { TALLY_SCRIPT_MISC_SIZE = 6 };
/* Writes the field misc, "U " or "KE ", without a NUL: the CPU mode, then flags that depend on the
 * record's type. They say that a sample's address is exact (E), that a mapping is of data (M), that
 * a comm comes from exec (E), that a switch is out (S), and that the task was preempted (Sp). */
void tally_script_misc(char *at, const struct tally_record_header *header);

/* A recording's metadata, in the format of `perf report --header-only`.
 *
 * Feature sections are read here and not stored; each has a printer in the table of
 * recording_header.c. Layouts: perf's tools/perf/Documentation/perf.data-file-format.txt.
 */

/* Appends all of it as lines that begin with '#'. `captured` is the file's modification time in
 * seconds since the Epoch. `full` shows topologies and caches, which otherwise take one line each.
 * For a pipe, appends what has been read so far. */
void tally_recording_header(const struct tally_perfdata *data, int64_t captured, bool full,
			    struct tally_buffer *out);

/* Appends one feature's lines when it arrives in a pipe; nothing if the feature is missing. */
void tally_recording_header_feature(const struct tally_perfdata *data, unsigned feature, bool full,
				    struct tally_buffer *out);

/* Appends ", NAME = VALUE" for each member of an attribute that is not 0, with perf's names; `equals`
 * is the text between name and value. */
void tally_attr_text(const struct tally_attr *attr, const char *equals, struct tally_buffer *out);

/* Samples in perf script's layout; and records with all their fields. */

/* Creates a printer for a recording that is being read, which must outlive it. `fields` may be NULL
 * for the defaults. Returns 0, -ENOMEM, or -ENODATA if samples lack a requested field. */
int tally_script_new(struct tally_recording *recording, const struct tally_script_fields *fields,
		     struct tally_script **out, struct tally_error *err);
void tally_script_free(struct tally_script *script);

/* Appends the sample that tally_recording_next() returned last. Returns 0, -ENOMEM, or -ENODATA: a
 * pipe announced an event late, and its samples lack a requested field. */
int tally_script_sample(struct tally_script *script, const struct tally_raw_record *raw,
			const struct tally_record *record, struct tally_buffer *out,
			struct tally_error *err);

/* Appends the head of a line for a record other than a sample, "command 1234 [000] 12.345678: ", in
 * the layout of its event's samples. `pid` and `tid` select the task whose command is shown; the
 * numbers are those of the task that was running. Returns like tally_script_sample(). */
int tally_script_head(struct tally_script *script, const struct tally_raw_record *raw,
		      const struct tally_record *record, uint32_t pid, uint32_t tid,
		      struct tally_buffer *out, struct tally_error *err);

/* Appends what follows the type's name in perf's line of a record other than a sample, to the end of
 * the line. */
void tally_script_record_body(struct tally_recording *recording, const struct tally_record *record,
			      struct tally_buffer *out);

/* Appends any record: offset, type, misc, then its fields by name. */
void tally_record_dump(const struct tally_recording *recording, const struct tally_raw_record *raw,
		       const struct tally_record *record, struct tally_buffer *out);

/* Samples as JSON Lines (schema in docs/script-json.md) and as CSV, one per line. */

/* Creates a printer for a recording that is being read, which must outlive it. `fields->layout`
 * selects JSON or CSV (RFC 4180). Returns 0, -ENOMEM, or -ENODATA if samples lack a requested
 * field. */
int tally_script_json_new(struct tally_recording *recording,
			  const struct tally_script_fields *fields, struct tally_script_json **out,
			  struct tally_error *err);
void tally_script_json_free(struct tally_script_json *script);

/* script_python.c: a recording's samples for a Python script that was written for perf. */

/* The Python program that runs such a script: `python3 -c PROGRAM DESCRIPTOR SCRIPT ARGUMENT…`; it
 * reads the samples, a line of JSON each, from the descriptor. */
extern const char tally_script_python_program[];

struct tally_script_python; /* opaque */

/* Returns 0 or -ENOMEM.  The recording must outlive it. */
int tally_script_python_new(struct tally_recording *recording, struct tally_script_python **out,
			    struct tally_error *err);
void tally_script_python_free(struct tally_script_python *python);
/* Appends the line of the sample that tally_recording_next() just gave.  Returns 0 or -errno. */
int tally_script_python_sample(struct tally_script_python *python,
			       const struct tally_raw_record *raw,
			       const struct tally_record *record, struct tally_buffer *out,
			       struct tally_error *err);

/* Appends CSV's header line; nothing for JSON. */
void tally_script_json_start(const struct tally_script_json *script, struct tally_buffer *out);

/* Appends the sample that tally_recording_next() returned last. Returns 0, -ENOMEM, or -ENODATA if
 * the sample lacks a requested field. */
int tally_script_json_sample(struct tally_script_json *script, const struct tally_raw_record *raw,
			     const struct tally_record *record, struct tally_buffer *out,
			     struct tally_error *err);

/* Records other than samples, in the format of `perf script --show-…-events`. */

/* Kinds of records, by perf's names. */
enum tally_script_events {
	TALLY_SCRIPT_MMAP = 1 << 0,
	TALLY_SCRIPT_TASK = 1 << 1,
	TALLY_SCRIPT_SWITCH = 1 << 2,
	TALLY_SCRIPT_NAMESPACE = 1 << 3,
	TALLY_SCRIPT_CGROUP = 1 << 4,
	TALLY_SCRIPT_LOST = 1 << 5,
	TALLY_SCRIPT_BPF = 1 << 6,
	TALLY_SCRIPT_TEXT_POKE = 1 << 7,
	TALLY_SCRIPT_ROUND = 1 << 8
};

/* Appends the record that tally_recording_next() returned last if `shown` has its kind. Returns
 * like tally_script_sample(). */
int tally_script_event(struct tally_recording *recording, struct tally_script *script,
		       const struct tally_raw_record *raw, const struct tally_record *record,
		       unsigned shown, struct tally_buffer *out, struct tally_error *err);

/* Running times and events over time: strips for a terminal, trace events for viewers. */

struct tally_timeline_view {
	unsigned columns;  /* total width; at least 60 are used */
	unsigned tasks;    /* limit of task rows; the longest running are shown */
	bool cpus_wanted, tasks_wanted;
	bool colours, ascii;
};

/* Returns 0 or -ENOMEM. */
int tally_timeline_text(const struct tally_activity *activity,
			const struct tally_timeline_view *view, struct tally_buffer *out);

/* Writes Trace Event Format: one track for each CPU with the tasks that ran on it, and one for each
 * task with its marks. Returns 0 or -ENOMEM. */
int tally_timeline_trace(const struct tally_activity *activity, struct tally_buffer *out);

/* Branch stacks in the format of perf script's fields brstack and brstacksym. */

enum tally_branch_field {
	/* " 0x55e0a4/0x55e0c8/P/-/-/12/CALL " for each branch, the latest first */
	TALLY_BRANCH_FIELD_ADDRESSES,
	TALLY_BRANCH_FIELD_SYMBOLS /* "main+0x14/f+0x8/P/-/-/12/CALL " */
};

/* Appends the branches of the sample that tally_recording_next() returned last, on one line without
 * a newline. With `objects`, each address is followed by its file in brackets. Appends nothing if
 * the sample has no branches. Returns 0 or -ENOMEM. */
int tally_branch_text(struct tally_recording *recording, const struct tally_sample *sample,
		      enum tally_branch_field field, bool objects, struct tally_buffer *out);

#endif

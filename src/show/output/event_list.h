/* `tally list`: the events that can be named, for a terminal, for a pipe, and as JSON. */
#ifndef TALLY_OUTPUT_EVENT_LIST_H
#define TALLY_OUTPUT_EVENT_LIST_H

#include "base/buffer.h"
#include "event/event.h"

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

#endif

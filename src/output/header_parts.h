/* The printers of feature sections, for the table in recording_header.c. A printer stops when its
 * section is truncated; the reader is then marked as failed. */
#ifndef TALLY_OUTPUT_HEADER_PARTS_H
#define TALLY_OUTPUT_HEADER_PARTS_H

#include "base/buffer.h"
#include "base/reader.h"
#include "perfdata/perfdata.h"

struct tally_header_part {
	const struct tally_perfdata *data;
	struct tally_reader reader; /* reads the section */
	struct tally_buffer *out;
};

typedef void tally_header_printer(struct tally_header_part *part);

/* Returns a string of the section: a length, then NUL-terminated text within it. If it is
 * malformed, returns "" and marks the reader as failed. */
const char *tally_header_string(struct tally_header_part *part);

/* The machine: header_machine.c. */
tally_header_printer tally_header_cpu_topology, tally_header_numa, tally_header_cache,
	tally_header_memory, tally_header_hybrid, tally_header_cpu_caps, tally_header_pmu_caps,
	tally_header_pmus, tally_header_cpu_domains;

/* Events and clocks: header_events.c. */
tally_header_printer tally_header_event_desc, tally_header_groups, tally_header_clock_data,
	tally_header_sample_time;

/* BPF programs: header_bpf.c. */
tally_header_printer tally_header_bpf_programs, tally_header_bpf_types;

#endif

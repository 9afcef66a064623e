/* Parses one line of `perf script` text: a sample's header, or a frame of its call chain.  For
 * perf_script_text.c only. */
#ifndef TALLY_PROFILE_PERF_SCRIPT_LINE_H
#define TALLY_PROFILE_PERF_SCRIPT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of the text, without a NUL at its end. */
struct tally_text_piece {
	const char *at;
	size_t length;
};

struct tally_script_header {
	struct tally_text_piece comm, event; /* empty: left out by `-F` */
	uint32_t pid, tid;                   /* 0: not known; a single number is the tid */
	bool has_time, has_period;
	uint64_t period;
	/* the text after the event's colon: a tracepoint's text, or the only frame */
	struct tally_text_piece rest;
};

struct tally_script_frame {
	/* without "+0x…"; empty for "[unknown]" and without a name */
	struct tally_text_piece symbol;
	struct tally_text_piece object; /* empty: not known */
	bool inlined;
};

bool tally_script_header_parse(const char *line, size_t length, struct tally_script_header *header);
bool tally_script_frame_parse(const char *line, size_t length, struct tally_script_frame *frame);

#endif

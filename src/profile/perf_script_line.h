/* One line of `perf script` text: a sample's header, or a frame of its call chain.  For
 * perf_script_text.c. */
#ifndef TALLY_PROFILE_PERF_SCRIPT_LINE_H
#define TALLY_PROFILE_PERF_SCRIPT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of the text: not terminated. */
struct tally_text_piece {
	const char *at;
	size_t length;
};

struct tally_script_header {
	struct tally_text_piece comm, event; /* either may be empty: `-F` left it out */
	uint32_t pid, tid;                   /* 0 when not known; a lone number is the thread's */
	bool has_time, has_period;
	uint64_t period;
	/* behind the event's colon: a tracepoint's text, or the one frame there is */
	struct tally_text_piece rest;
};

struct tally_script_frame {
	struct tally_text_piece
		symbol; /* without "+0x…"; "[unknown]" and nothing at all are empty */
	struct tally_text_piece object; /* empty when not known */
	bool inlined;
};

bool tally_script_header_parse(const char *line, size_t length, struct tally_script_header *header);
bool tally_script_frame_parse(const char *line, size_t length, struct tally_script_frame *frame);

#endif

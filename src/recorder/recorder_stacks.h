/* The stacks of samples: copies become call chains while draining. */
#ifndef TALLY_RECORDER_STACKS_H
#define TALLY_RECORDER_STACKS_H

#include "recorder/recorder_events.h"
#include "recorder/recorder_outer.h"
#include "recorder/recorder_output.h"
#include "recorder/recorder_tasks.h"

enum { TALLY_RECORDER_CHAINS = 64 };

enum {
	TALLY_RECORDER_MENDED_WORDS = 136,
	TALLY_RECORDER_MENDED_REGISTERS = 3,
	TALLY_RECORDER_MENDED_BYTES = 512
};

/* The last mended chain, with the fields that it was made from.  Hits of one place come in a row,
 * so the next sample is often the same. */
struct tally_recorder_mended {
	uint64_t space; /* generation of the process's mappings; 0: none */
	uint32_t pid;
	size_t words, stack_size; /* of the chain, and of the copied top of the stack */
	uint64_t chain[TALLY_RECORDER_MENDED_WORDS], registers[TALLY_RECORDER_MENDED_REGISTERS];
	uint8_t stack[TALLY_RECORDER_MENDED_BYTES];
	bool is_mended;
	struct tally_user_stack_inner inner;
};

/* A sample whose stack may be completed in a later pass. */
struct tally_recorder_held {
	const struct tally_recorder_source *source;
	uint8_t *bytes; /* of the record, as the ring had them */
	size_t size;
	uint64_t *addresses, *stack_pointers; /* of the frames in its copy */
	size_t frames;
	uint32_t tid;
	uint64_t time_ns;
	uint64_t pass; /* in which it was read */
};

struct tally_recorder_holds {
	struct tally_recorder_held *items;
	size_t count;
	uint64_t pass;
	uint64_t last_pass_ns; /* all records of the last pass are older */
	bool is_open;          /* a pass is in progress, and it is not the last one */
	/* a thread whose whole stack was seen at news_ns: its older samples can be written; 0:
	 * none */
	uint32_t news_tid;
	uint64_t news_ns;
};

struct tally_recorder_stacks {
	struct tally_recorder_session *session;
	struct tally_unwind_chain *chains[TALLY_RECORDER_CHAINS]; /* by thread; NULL: none yet */
	struct tally_recorder_frames frames;                      /* of the last unwound stack */
	struct tally_recorder_mended mended;
	struct tally_recorder_outer *outer; /* NULL: cut stacks stay cut */
	struct tally_recorder_holds holds;
};

#endif

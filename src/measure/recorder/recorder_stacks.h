/* The stacks of samples: copies become call chains while draining. */
#ifndef TALLY_RECORDER_STACKS_H
#define TALLY_RECORDER_STACKS_H

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
	struct tally_unwind_extent extent;
	uint64_t called;
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
	struct tally_recorder_tasks *tasks;
	struct tally_recorder_copies *copies; /* to choose their size */
	struct tally_recorder_output *output;
	struct tally_unwind_chain *chains[TALLY_RECORDER_CHAINS]; /* by thread; NULL: none yet */
	struct tally_recorder_frames frames;                      /* of the last unwound stack */
	struct tally_recorder_mended mended;
	struct tally_recorder_outer *outer; /* NULL: cut stacks stay cut */
	struct tally_recorder_holds holds;
};

/* Around a pass over the rings; it begins when their heads have been noted. */
void tally_recorder_stacks_begin_pass(struct tally_recorder_stacks *stacks, bool last);
void tally_recorder_stacks_end_pass(struct tally_recorder_stacks *stacks, uint64_t now_ns);
/* Writes a sample of a source that unwinds stacks or mends chains, or holds it until a later
 * pass. */
int tally_recorder_write_stack(struct tally_recorder_stacks *stacks,
			       const struct tally_recorder_source *source, const void *bytes,
			       size_t size, struct tally_error *err);
/* After a pass: writes the samples that an earlier pass held, except those that may wait for more;
 * `all`: writes every held sample. */
int tally_recorder_write_held(struct tally_recorder_stacks *stacks, bool all,
			      struct tally_error *err);
/* True if a sample of an earlier pass is still held: then no round may end. */
bool tally_recorder_holds_on(const struct tally_recorder_stacks *stacks);
void tally_recorder_stacks_release(struct tally_recorder_stacks *stacks);

/* Writes a sample to `out` (64 KiB), in the file's form.  Returns its size, 0 if it is held now, or
 * -EBADMSG. */
long tally_recorder_rewrite_sample(struct tally_recorder_stacks *stacks,
				   const struct tally_recorder_source *source, const void *bytes,
				   size_t size, void *out);

#endif

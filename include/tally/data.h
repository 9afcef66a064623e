/* libtally: recordings (perf.data) of tally and of perf, record by record, with the names of what
 * was sampled.
 *
 *     struct tally_data *data = tally_data_open("tally.data", error, sizeof(error));
 *     const struct tally_data_sample *sample;
 *     while (tally_data_next(data, &sample, error, sizeof(error)) > 0)
 *             printf("%s %s\n", sample->comm, sample->frames[0].function);
 *
 * Files and pipes, of either byte order, compressed or not; records come in order of time.  Used by
 * one thread at a time.
 */
#ifndef TALLY_DATA_H
#define TALLY_DATA_H

#include "tally/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tally_data; /* opaque */

/* Where a sample was: innermost first.  Texts live as long as the recording. */
struct tally_data_frame {
	uint64_t address;     /* as recorded: the sampled one, or one to which is returned */
	const char *function; /* NULL: not known */
	const char *object;   /* the file's path, "[kernel.kallsyms]", "[unknown]" */
	const char *file;     /* of the source, as the compiler had it; NULL: not known */
	uint32_t line;        /* in `file`; 0: not known */
	bool inlined;         /* into the next frame, whose address it has */
};

struct tally_data_sample {
	const char *event;
	const char *comm;   /* what the thread was called then */
	uint32_t pid, tid;
	uint32_t cpu;       /* UINT32_MAX: not recorded */
	uint64_t time;      /* ns of the recording's clock; 0: not recorded */
	uint64_t period;    /* how many events the sample stands for */
	const struct tally_data_frame *frames;
	size_t frame_count; /* at least 1 where an address was recorded */
	const struct tally_record *record; /* all fields, as they are written */
};

/* Opens a file, or standard input as "-".  NULL with a sentence in `error` (may be NULL) and errno
 * set.  Owned by the caller. */
struct tally_data *tally_data_open(const char *path, char *error, size_t error_size);

/* The next sample, valid until the next call: 1; 0 at the end; -1 with errno set and a sentence in
 * `error`. */
int tally_data_next(struct tally_data *data, const struct tally_data_sample **sample, char *error,
		    size_t error_size);

/* The next record of any type, samples among them: as tally_data_next().  Types of tools
 * (TALLY_RECORD_USER_START and up) have their header alone. */
int tally_data_next_record(struct tally_data *data, const struct tally_record **record, char *error,
			   size_t error_size);

/* Samples that the recorder lost, as far as was read. */
uint64_t tally_data_lost(const struct tally_data *data);

/* What is wrong with the file ("… is damaged at offset 4096"), once all was read; NULL: nothing.
 * Everything before it was given. */
const char *tally_data_damage(const struct tally_data *data);

/* NULL is fine. */
void tally_data_close(struct tally_data *data);

#ifdef __cplusplus
}
#endif

#endif

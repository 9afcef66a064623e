/* libtally: recordings (perf.data) of tally and of perf, record by record, with the names of the
 * sampled functions.
 *
 *     struct tally_data *data = tally_data_open("tally.data", error, sizeof(error));
 *     const struct tally_data_sample *sample;
 *     while (tally_data_next(data, &sample, error, sizeof(error)) > 0)
 *             printf("%s %s\n", sample->comm, sample->frames[0].function);
 *
 * Reads files and pipes, of either byte order, compressed or not.  Records come in order of time.
 * Only one thread at a time may use a recording. */
#ifndef TALLY_DATA_H
#define TALLY_DATA_H

#include "tally/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tally_data; /* opaque */

/* One frame of a sample's call chain.  Frames are ordered from the innermost to the outermost.
 * Texts live as long as the recording. */
struct tally_data_frame {
	uint64_t address;     /* as recorded: the sampled address, or a return address */
	const char *function; /* NULL: unknown */
	const char *object;   /* the file's path, "[kernel.kallsyms]" or "[unknown]" */
	const char *file;     /* source file, as the compiler named it; NULL: unknown */
	uint32_t line;        /* line in `file`; 0: unknown */
	bool inlined;         /* inlined into the next frame, which has the same address */
};

struct tally_data_sample {
	const char *event;
	const char *comm;   /* the thread's name at that time */
	uint32_t pid, tid;
	uint32_t cpu;       /* UINT32_MAX: not recorded */
	uint64_t time;      /* ns of the recording's clock; 0: not recorded */
	uint64_t period;    /* number of events that the sample stands for */
	const struct tally_data_frame *frames;
	size_t frame_count; /* at least 1 if an address was recorded */
	const struct tally_record *record; /* all fields, as recorded */
};

/* Opens a file, or standard input if `path` is "-".  Returns NULL, with a sentence in `error` (may
 * be NULL) and errno set, if that fails.  The caller owns the recording. */
struct tally_data *tally_data_open(const char *path, char *error, size_t error_size);

/* Reads the next sample, which is valid until the next call.  Returns 1, 0 at the end, or -1 with
 * errno set and a sentence in `error`. */
int tally_data_next(struct tally_data *data, const struct tally_data_sample **sample, char *error,
		    size_t error_size);

/* Like tally_data_next(), but reads the next record of any type, samples included.  Of records that
 * tools write (TALLY_RECORD_USER_START and up), only the header is given. */
int tally_data_next_record(struct tally_data *data, const struct tally_record **record, char *error,
			   size_t error_size);

/* Returns the number of samples that the recorder lost, in the part read so far. */
uint64_t tally_data_lost(const struct tally_data *data);

/* After the end: returns what is wrong with the file ("… is damaged at offset 4096"), or NULL if it
 * is intact.  All records before the damage have been given. */
const char *tally_data_damage(const struct tally_data *data);

/* Closes the recording.  NULL is allowed. */
void tally_data_close(struct tally_data *data);

#ifdef __cplusplus
}
#endif

#endif

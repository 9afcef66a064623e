/* Builds records of the state before the kernel's first record, field by field.  For record_*.c. */
#ifndef TALLY_RECORDER_SYNTHESIS_H
#define TALLY_RECORDER_SYNTHESIS_H

#include "machine/bpf_codes.h"
#include "recorder/recorder_state.h"

struct tally_synthesis {
	struct tally_recorder *recorder;
	struct tally_error *err;
	pid_t pid;
	uint64_t time_ns; /* 0: before everything else */
	bool is_known; /* the recorder's own tasks have it already */
	_Alignas(8) uint8_t bytes[8192];
	size_t size;
};

void tally_synthesis_begin(struct tally_synthesis *synthesis);
void tally_synthesis_u32(struct tally_synthesis *synthesis, uint32_t value);
void tally_synthesis_u64(struct tally_synthesis *synthesis, uint64_t value);
/* Adds a string, padded with zeros to whole words.  A string longer than a path is cut. */
void tally_synthesis_string(struct tally_synthesis *synthesis, const char *text);
/* Adds trailer and header; the record goes to the file and to the recorder's tasks.  Returns 0 or
 * -errno. */
int tally_synthesis_finish(struct tally_synthesis *synthesis, uint32_t type, uint16_t misc,
			   pid_t pid, pid_t tid);

/* record_surroundings.c: if enabled, writes a thread's namespaces, and all cgroups: as /proc and
 * the hierarchy show them, or as the recorder knows them.  Return 0 or -errno. */
int tally_synthesize_namespaces(struct tally_synthesis *synthesis, pid_t pid, pid_t tid);
int tally_synthesize_cgroups(struct tally_synthesis *synthesis);
int tally_synthesize_known_namespaces(struct tally_synthesis *synthesis,
				      const struct tally_thread *thread);
int tally_synthesize_known_cgroups(struct tally_synthesis *synthesis);

/* recorder_modules.c: writes records for the kernel modules that were read and have none yet.
 * Returns 0 or -errno. */
int tally_synthesize_modules(struct tally_synthesis *synthesis);

/* record_bpf.c: reads the code of BPF programs, if it is recorded and this user may read it; and
 * writes its records.  Return 0 or -errno. */
int tally_recorder_read_bpf(struct tally_recorder *recorder, struct tally_bpf_codes *out,
			    struct tally_error *err);
int tally_synthesize_bpf(struct tally_synthesis *synthesis, const struct tally_bpf_codes *codes);
/* Writes a record for code that the kernel made; `type` as in the kernel's records. */
int tally_synthesize_symbol(struct tally_synthesis *synthesis, uint64_t start, uint32_t size,
			    uint16_t type, const char *name);

#endif

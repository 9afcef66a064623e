/* What `script` shows of a sample besides its place: registers, addresses of data, weights, pages;
 * as perf prints them. */
#ifndef TALLY_OUTPUT_SCRIPT_VALUES_H
#define TALLY_OUTPUT_SCRIPT_VALUES_H

#include "base/buffer.h"
#include "output/script_fields.h"
#include "recording/recording.h"

/* The fields addr (where sym and dso are shown, of what it is, where that means something),
 * data_src, weight and ins_lat.  `source_width`: of the widest data_src so far, which others are
 * made as wide as.  0 or -ENOMEM. */
int tally_script_put_address(struct tally_recording *recording,
			     const struct tally_recorded_event *event,
			     const struct tally_sample *sample, uint32_t fields,
			     size_t *source_width, struct tally_buffer *out);

/* bpf-output: lines of their own. */
void tally_script_put_bpf_output(const struct tally_sample *sample, struct tally_buffer *out);

/* tod: what is added to the samples' time to get the wall's.  0, or -ENODATA: the recording doesn't
 * tell. */
int tally_script_wall_offset(const struct tally_recording *recording, uint64_t *offset_ns,
			     struct tally_error *err);
enum { TALLY_SCRIPT_WALL_TIME_MAX = 40 };
/* "2026-11-22 12:12:12.326022", or to the nanosecond, of at most so many bytes; the byte behind it
 * is returned. */
char *tally_script_wall_time(char *at, uint64_t time_ns, bool nanoseconds);

enum { TALLY_SCRIPT_MISC_SIZE = 6 };
/* "U     ", "KE    ", without a NUL: whose code it was, and what else a record of its type says: of samples that the address
 * is exact, of maps that they are of data (M), of commands that they come of exec (E), of switches
 * that they are out (S) and that the task would have run on (Sp). */
void tally_script_misc(char *at, const struct tally_record_header *header);

/* iregs and uregs: " ABI:2    AX:0x1    IP:0x7f3c11a0 " */
void tally_script_put_regs(const struct tally_recording *recording,
			   const struct tally_recorded_event *event,
			   const struct tally_sample *sample, uint32_t fields,
			   struct tally_buffer *out);

/* phys_addr, data_page_size, code_page_size, cgroup. */
void tally_script_put_memory(struct tally_recording *recording, const struct tally_sample *sample,
			     uint32_t fields, struct tally_buffer *out);

#endif

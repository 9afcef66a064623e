/* The fields of a sample besides its place, as perf prints them: registers, data addresses,
 * weights, pages. */
#ifndef TALLY_OUTPUT_SCRIPT_VALUES_H
#define TALLY_OUTPUT_SCRIPT_VALUES_H

#include "base/buffer.h"
#include "output/script_fields.h"
#include "recording/recording.h"

/* Puts the fields addr, data_src, weight and ins_lat. If sym or dso is shown, addr is followed by
 * the name of the data, for events where that makes sense. `source_width` is the width of the
 * widest data_src so far; others are padded to it. Returns 0 or -ENOMEM. */
int tally_script_put_address(struct tally_recording *recording,
			     const struct tally_recorded_event *event,
			     const struct tally_sample *sample, uint32_t fields,
			     size_t *source_width, struct tally_buffer *out);

/* Puts the field bpf-output, on lines of its own. */
void tally_script_put_bpf_output(const struct tally_sample *sample, struct tally_buffer *out);

/* For the field tod: stores what to add to a sample's time to get wall-clock time. Returns 0, or
 * -ENODATA if the recording lacks it. */
int tally_script_wall_offset(const struct tally_recording *recording, uint64_t *offset_ns,
			     struct tally_error *err);
enum { TALLY_SCRIPT_WALL_TIME_MAX = 40 };
/* Writes "2026-11-22 12:12:12.326022", optionally to the nanosecond, without a NUL: at most
 * TALLY_SCRIPT_WALL_TIME_MAX bytes. Returns the end. */
char *tally_script_wall_time(char *at, uint64_t time_ns, bool nanoseconds);

enum { TALLY_SCRIPT_MISC_SIZE = 6 };
/* Writes the field misc, "U " or "KE ", without a NUL: the CPU mode, then flags that depend on the
 * record's type. They say that a sample's address is exact (E), that a mapping is of data (M), that
 * a comm comes from exec (E), that a switch is out (S), and that the task was preempted (Sp). */
void tally_script_misc(char *at, const struct tally_record_header *header);

/* Puts iregs and uregs: " ABI:2 AX:0x1 IP:0x7f3c11a0 ". */
void tally_script_put_regs(const struct tally_recording *recording,
			   const struct tally_recorded_event *event,
			   const struct tally_sample *sample, uint32_t fields,
			   struct tally_buffer *out);

/* Puts phys_addr, data_page_size, code_page_size and cgroup. */
void tally_script_put_memory(struct tally_recording *recording, const struct tally_sample *sample,
			     uint32_t fields, struct tally_buffer *out);

#endif

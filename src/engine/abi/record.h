/* Helpers for records, which tally/record.h defines and decodes.  Freestanding. */
#ifndef TALLY_ABI_RECORD_H
#define TALLY_ABI_RECORD_H

#include "abi/attr.h"
#include "tally/record.h"

/* Set by tally's recorder in a SAMPLE whose user stack does not reach the start of its thread.  The
 * kernel never sets these bits in samples, and tools use them only in MMAP2 records. */
/* the copied bytes, or the room for frames, ended first */
#define TALLY_MISC_STACK_CUT TALLY_MISC_PROC_MAP_PARSE_TIMEOUT
#define TALLY_MISC_STACK_ENDED \
	TALLY_MISC_MMAP_DATA /* with _CUT: the kernel copied fewer bytes than requested */
#define TALLY_MISC_STACK_LOST \
	TALLY_MISC_MMAP_DATA /* without _CUT: the caller of the last frame can't be found */
#define TALLY_MISC_STACK_INCOMPLETE (TALLY_MISC_STACK_CUT | TALLY_MISC_STACK_LOST)

/* Positions of the fields in an event's samples, if they are the same in each sample: only words,
 * followed by a call chain and raw data.  Most recordings are like that, and such samples are
 * decoded by a few loads. */
struct tally_sample_layout {
	bool is_plain;   /* false: use tally_record_decode() */
	uint8_t words;   /* number of words before the chain, the header's included */
	/* Index of each field's word, the header being 0; 0: absent. */
	uint8_t identifier, ip, tid, time, addr, id, stream_id, cpu, period;
	bool has_chain, has_raw;
	uint64_t type; /* attr.sample_type */
	uint64_t fixed_period; /* the period if there is no `period` word */
};

void tally_sample_layout_init(struct tally_sample_layout *layout, const struct tally_attr *attr);

/* Same as tally_record_decode() of a SAMPLE, for a plain layout. */
int tally_sample_decode(const struct tally_sample_layout *layout, const void *bytes, size_t size,
			struct tally_record *record);

/* Finds the id of the event that wrote a record without decoding it, by `sample_type` of any event
 * of the recording (they agree on its place).  Returns false if the records carry no id. */
bool tally_record_id(const struct tally_attr *attr, const void *bytes, size_t size, uint64_t *id);

/* True if a MMAP2 record is one of Linux 3.12's first kernels.  There the file's name follows the
 * inode directly, where later kernels have `prot` and `flags`.  The second byte of a protection is
 * 0 in either byte order. */
static inline bool tally_mmap2_is_early(const uint8_t *at, size_t left)
{
	return left >= 2 && at[0] >= ' ' && at[0] < 0x7f && at[1] >= ' ' && at[1] < 0x7f;
}

/* Returns the bytes of the sample_id trailer in records of `attr`. */
size_t tally_sample_id_size(const struct tally_attr *attr);

/* Returns the real bytes of the record, trailer included, which may be fewer than its header says.
 * Linux (6.18: perf_event_ksymbol_output() and perf_event_bpf_output() of kernel/events/core.c)
 * adds the trailer of every event that gets a KSYMBOL or BPF_EVENT record to one length, and so
 * writes the record too long: the rest is old content of the ring. */
size_t tally_record_true_size(const struct tally_record_header *header, const void *bytes,
			      size_t trailer);

/* Writes the sample_id trailer for `attr` at `out` (tally_sample_id_size() bytes). */
void tally_sample_id_encode(const struct tally_attr *attr, const struct tally_sample_id *id,
			    void *out);

/* Names of bits, for dumps.  Tables end with a NULL name. */
struct tally_bit_name { uint64_t bit; const char *name; };
extern const struct tally_bit_name tally_sample_type_names[]; /* "IP" … */
extern const struct tally_bit_name tally_read_format_names[]; /* "TOTAL_TIME_ENABLED" … */
extern const struct tally_bit_name
	tally_branch_type_names[]; /* "USER" …: attr.branch_sample_type */
extern const struct tally_bit_name
	tally_attr_flag_names[]; /* "disabled" … (precise_ip is not a bit) */

#endif

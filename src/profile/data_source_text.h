/* A sample's data_src (PERF_SAMPLE_DATA_SRC) as text, in the words of `perf script` and `perf
 * report`. */
#ifndef TALLY_PROFILE_DATA_SOURCE_TEXT_H
#define TALLY_PROFILE_DATA_SOURCE_TEXT_H

#include "base/buffer.h"

#include <stdint.h>

/* Appends "|OP LOAD|LVL L1 hit|SNP None|TLB L1 hit|LCK No|BLK  N/A". */
void tally_data_source_text(uint64_t data_src, struct tally_buffer *out);

/* Append one part of it, such as "L1 hit" or "Data Addr". */
void tally_data_level_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_snoop_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_tlb_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_lock_text(uint64_t data_src, struct tally_buffer *out);
void tally_data_block_text(uint64_t data_src, struct tally_buffer *out);

#endif

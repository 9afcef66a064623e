/* What a sample's data_src says, as `perf script` prints it. */
#ifndef TALLY_OUTPUT_DATA_SOURCE_TEXT_H
#define TALLY_OUTPUT_DATA_SOURCE_TEXT_H

#include "base/buffer.h"

#include <stdint.h>

/* Appends "|OP LOAD|LVL L1 hit|SNP None|TLB L1 hit|LCK No|BLK  N/A". */
void tally_data_source_text(uint64_t data_src, struct tally_buffer *out);

#endif

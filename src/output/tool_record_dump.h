/* Records that tools add to the kernel's (types from 64 on), with all their fields. */
#ifndef TALLY_OUTPUT_TOOL_RECORD_DUMP_H
#define TALLY_OUTPUT_TOOL_RECORD_DUMP_H

#include "base/buffer.h"
#include "recording/recording.h"

/* Appends " name=value" for each field of the record. */
void tally_tool_record_dump(const struct tally_raw_record *raw, struct tally_buffer *out);

#endif

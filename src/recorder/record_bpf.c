/* Writes records for the BPF programs that were loaded before the recording: KSYMBOL records for
 * each program's code, then its BPF_EVENT, as the kernel writes them.  The kernel itself reports
 * later changes. */
#include "recorder/recorder_synthesis.h"

#include <errno.h>
#include <string.h>

enum { PROGRAM_LOADED = 1 };

int tally_synthesize_symbol(struct tally_synthesis *synthesis, uint64_t start, uint32_t size,
			    uint16_t type, const char *name)
{
	tally_synthesis_begin(synthesis);
	tally_synthesis_u64(synthesis, start);
	tally_synthesis_u32(synthesis, size);
	tally_synthesis_u32(synthesis, type); /* flags are 0: it is loaded */
	tally_synthesis_string(synthesis, name);
	return tally_synthesis_finish(synthesis, TALLY_RECORD_KSYMBOL, 0, 0, 0);
}

static int write_program(struct tally_synthesis *synthesis, const struct tally_bpf_code *code)
{
	uint64_t tag;
	memcpy(&tag, code->tag, sizeof(tag));
	tally_synthesis_begin(synthesis);
	tally_synthesis_u32(synthesis, PROGRAM_LOADED);
	tally_synthesis_u32(synthesis, code->program);
	tally_synthesis_u64(synthesis, tag);
	return tally_synthesis_finish(synthesis, TALLY_RECORD_BPF_EVENT, 0, 0, 0);
}

int tally_recorder_read_bpf(struct tally_recorder *recorder, struct tally_bpf_codes *out,
			    struct tally_error *err)
{
	const uint64_t both = TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT;
	bool is_wanted = (tally_recorder_side_band(recorder)->attr.flags & both) == both;
	int result = is_wanted ? tally_bpf_codes_read(out) : 0;
	/* without the permission to know, there are none */
	return result == -ENOMEM ? tally_error_set(err, result, "out of memory") : 0;
}

int tally_synthesize_bpf(struct tally_synthesis *synthesis, const struct tally_bpf_codes *codes)
{
	int result = 0;
	for (size_t i = 0; !result && i < codes->count; i++) {
		const struct tally_bpf_code *code = &codes->items[i];
		bool is_last = i + 1 == codes->count ||
			       codes->items[i + 1].program != code->program;
		result = tally_synthesize_symbol(synthesis, code->start, code->size,
						 TALLY_KSYMBOL_BPF, code->name);
		if (!result && is_last && code->program)
			result = write_program(synthesis, code);
	}
	return result;
}

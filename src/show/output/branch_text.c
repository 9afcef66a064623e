/* Prints both ends of each branch, then its flags, cycles and kind in perf's letters and words. */
#include "output/output.h"

#include "profile/profile.h"

#include <errno.h>
#include <inttypes.h>

static const char *type_name(uint64_t flags)
{
	static const char *const names[16] = { "",       "COND",      "UNCOND",   "IND",
					       "CALL",   "IND_CALL",  "RET",      "SYSCALL",
					       "SYSRET", "COND_CALL", "COND_RET", "ERET",
					       "IRQ",    "SERROR",    "NO_TX",    "" };
	static const char *const more[16] = { "FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1",
					      "ARCH_2",     "ARCH_3",     "ARCH_4",     "ARCH_5",
					      "",           "",           "",           "",
					      "",           "",           "",           "" };
	unsigned type = flags >> TALLY_BRANCH_KIND_SHIFT & 15,
		 extended = flags >> (TALLY_BRANCH_KIND_SHIFT + 6) & 15;
	if (type == 15)
		return more[extended];
	return names[type];
}

static char letter_or_dash(bool is_set, char letter)
{
	if (is_set)
		return letter;
	return '-';
}

static void put_flags(uint64_t flags, struct tally_buffer *out)
{
	char prediction = letter_or_dash(flags & TALLY_BRANCH_PREDICTED, 'P');
	if (flags & TALLY_BRANCH_MISPREDICTED)
		prediction = 'M';
	tally_buffer_printf(out, "/%c/%c/%c/%u/%s ", prediction,
			    letter_or_dash(flags & TALLY_BRANCH_TRANSACTION, 'X'),
			    letter_or_dash(flags & TALLY_BRANCH_ABORTED, 'A'),
			    (unsigned)(flags >> TALLY_BRANCH_CYCLES_SHIFT & 0xffff),
			    type_name(flags));
}

/* A branch record does not say whether an address is the kernel's; the kernel has the upper
 * half. */
static int put_end(struct tally_recording *recording, uint32_t pid, uint64_t address,
		   enum tally_branch_field field, bool objects, struct tally_buffer *out)
{
	struct tally_names *names = &recording->names;
	struct tally_place place = tally_place_of(&recording->tasks, pid, address >> 63, address);
	uint64_t offset = 0;
	char map[TALLY_PERF_MAP_PATH_BYTES];
	uint32_t function = 0;
	if (field == TALLY_BRANCH_FIELD_SYMBOLS || objects)
		function = tally_names_function(names, &place, &offset);
	if (function == UINT32_MAX)
		return -ENOMEM;
	if (field == TALLY_BRANCH_FIELD_ADDRESSES)
		tally_buffer_printf(out, "0x%" PRIx64, address);
	else
		tally_buffer_text(out, tally_names_text(names, function));
	if (field == TALLY_BRANCH_FIELD_SYMBOLS &&
	    names->functions.items[function].name != TALLY_STRING_NONE)
		tally_buffer_printf(out, "+0x%" PRIx64, offset);
	if (objects)
		tally_buffer_printf(out, "(%s)", tally_names_mapped_object(names, function, map));
	return 0;
}

int tally_branch_text(struct tally_recording *recording, const struct tally_sample *sample,
		      enum tally_branch_field field, bool objects, struct tally_buffer *out)
{
	for (uint64_t i = 0; sample->branches && i < sample->branch_count; i++) {
		const struct tally_branch *branch = &sample->branches[i];
		if (field == TALLY_BRANCH_FIELD_ADDRESSES)
			tally_buffer_char(out, ' ');
		if (put_end(recording, sample->pid, branch->from, field, objects, out) < 0)
			return -ENOMEM;
		tally_buffer_char(out, '/');
		if (put_end(recording, sample->pid, branch->to, field, objects, out) < 0)
			return -ENOMEM;
		put_flags(branch->flags, out);
	}
	if (out->failed)
		return -ENOMEM;
	return 0;
}

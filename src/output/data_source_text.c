/* perf_event_open(2), PERF_SAMPLE_DATA_SRC: fields of a few bits each.  Most are sets, of which older kernels tell in one field
 * and newer ones in another as well: where the data was found stands in `level` (a set), `level_number` and `hops`. */
#include "output/data_source_text.h"

#include <stdbool.h>

enum { HIT = 2, MISS = 4, NAMES_MAX = 14 };


static unsigned take(uint64_t *data_src, unsigned bits)
{
	unsigned value = (unsigned)(*data_src & ((1u << bits) - 1));
	*data_src >>= bits;
	return value;
}

static void put_or(bool *is_first, const char *name, struct tally_buffer *out)
{
	tally_buffer_printf(out, "%s%s", *is_first ? "" : " or ", name);
	*is_first = false;
}

/* Names of bits from the lowest up; NULL: not one of the set. */
static bool put_set(unsigned set, const char *const *names, unsigned count, bool is_first, struct tally_buffer *out)
{
	for (unsigned bit = 0; bit < count; bit++)
		if (set >> bit & 1 && names[bit])
			put_or(&is_first, names[bit], out);
	return is_first;
}

static void put_outcome(unsigned set, struct tally_buffer *out)
{
	tally_buffer_text(out, set & HIT ? " hit" : "");
	tally_buffer_text(out, set & MISS ? " miss" : "");
}

static void put_level(unsigned level, unsigned number, bool is_remote, unsigned hops, struct tally_buffer *out)
{
	static const char *const levels[NAMES_MAX] = { "N/A", NULL, NULL, "L1", "LFB/MAB", "L2", "L3", "Local RAM",
						       "Remote RAM (1 hop)", "Remote RAM (2 hops)", "Remote Cache (1 hop)",
						       "Remote Cache (2 hops)", "I/O", "Uncached" };
	static const char *const numbers[16] = { [9] = "CXL", [10] = "I/O", [11] = "Any cache", [12] = "LFB/MAB", [13] = "RAM",
						 [14] = "PMEM", [15] = "N/A" };
	static const char *const distances[8] = { [1] = "core, same node", "node, same socket", "socket, same board", "board",
						  "5 hops", "6 hops", "7 hops" };
	bool is_first = true, is_empty = !is_remote && !hops && !number;
	tally_buffer_text(out, is_remote ? "Remote " : "");
	if (hops) /* it says more than the set does */
		tally_buffer_printf(out, "%s ", distances[hops]);
	else
		is_first = put_set(level, levels, NAMES_MAX, true, out);
	if (number && numbers[number])
		put_or(&is_first, numbers[number], out);
	else if (number)
		tally_buffer_printf(out, "%sL%u", is_first ? "" : " or ", number);
	tally_buffer_text(out, is_empty && is_first ? "N/A" : "");
	put_outcome(level, out);
}

void tally_data_source_text(uint64_t data_src, struct tally_buffer *out)
{
	static const char *const operations[5] = { "N/A", "LOAD", "STORE", "PFETCH", "EXEC" };
	static const char *const snoops[7] = { "N/A", "None", "Hit", "Miss", "HitM", "Fwd", "Peer" };
	static const char *const translations[7] = { "N/A", NULL, NULL, "L1", "L2", "Walker", "Fault" };
	unsigned operation = take(&data_src, 5), level = take(&data_src, 14), snoop = take(&data_src, 5);
	unsigned lock = take(&data_src, 2), translation = take(&data_src, 7), number = take(&data_src, 4);
	unsigned remote = take(&data_src, 1);
	snoop |= take(&data_src, 2) << 5;
	unsigned blocked = take(&data_src, 3), hops = take(&data_src, 3);
	tally_buffer_printf(out, "|OP %s|LVL ", operation ? operations[__builtin_ctz(operation)] : "No");
	put_level(level, number, remote, hops, out);
	tally_buffer_text(out, "|SNP ");
	tally_buffer_text(out, put_set(snoop, snoops, 7, true, out) ? "N/A" : "");
	tally_buffer_text(out, "|TLB ");
	tally_buffer_text(out, put_set(translation, translations, 7, true, out) ? "N/A" : "");
	put_outcome(translation, out);
	tally_buffer_printf(out, "|LCK %s|BLK ", lock & 1 ? "N/A" : lock & 2 ? "Yes" : "No");
	if (!blocked || blocked & 1)
		tally_buffer_text(out, " N/A");
	else
		tally_buffer_printf(out, "%s%s", blocked & 2 ? " Data" : "", blocked & 4 ? " Addr" : "");
}

/* Tables of names, by bit, turn bit fields into perf's words.  Sources of data take most of the
 * file. */
#include "profile/profile.h"

#include <inttypes.h>
#include <stdbool.h>

void tally_page_size_text(uint64_t bytes, struct tally_buffer *out)
{
	static const char units[] = "BKMG";
	unsigned unit = 0;
	for (; bytes >= 2 * 1024 && units[unit + 1]; bytes >>= 10)
		unit++;
	if (bytes)
		tally_buffer_printf(out, "%" PRIu64 "%c", bytes, units[unit]);
	else
		tally_buffer_text(out, "N/A");
}

void tally_transaction_text(uint64_t flags, struct tally_buffer *out)
{
	static const char *const words[8] = { "EL",    "TX",  "SYNC",      "ASYNC",
					      "RETRY", "CON", "CAP-WRITE", "CAP-READ" };
	const unsigned of_the_instruction = 1 << 2 | 1 << 3, code_shift = 32;
	const char *between = "";
	for (unsigned bit = 0; bit < sizeof(words) / sizeof(words[0]); bit++)
		if (flags >> bit & 1) {
			tally_buffer_printf(out, "%s%s", between, words[bit]);
			between = " ";
		}
	if (flags && !(flags & of_the_instruction))
		tally_buffer_printf(out, "%sNEITHER", between);
	if (flags >> code_shift)
		tally_buffer_printf(out, " :%" PRIx64, flags >> code_shift);
	if (!flags)
		tally_buffer_text(out, "-");
}

/* ---- sources of data ----------------------------------------------------- */

/* perf_event_open(2), PERF_SAMPLE_DATA_SRC: fields of a few bits each.  Most of them are sets.
 * Newer kernels tell some facts in a second field as well: the level at which the data was found is
 * in `level` (a set), and in `level_number` and `hops`. */
enum { HIT = 2, MISS = 4, NAMES_MAX = 14 };

/* Returns the field of `bits` bits that begins at bit `at`. */
static unsigned field(uint64_t data_src, unsigned at, unsigned bits)
{
	return (unsigned)(data_src >> at & ((1u << bits) - 1));
}

static void put_or(bool *is_first, const char *name, struct tally_buffer *out)
{
	if (!*is_first)
		tally_buffer_text(out, " or ");
	tally_buffer_text(out, name);
	*is_first = false;
}

/* Appends the names of the set bits, lowest first.  A bit whose name is NULL is skipped. */
static bool put_set(unsigned set, const char *const *names, unsigned count, bool is_first,
		    struct tally_buffer *out)
{
	for (unsigned bit = 0; bit < count; bit++)
		if (set >> bit & 1 && names[bit])
			put_or(&is_first, names[bit], out);
	return is_first;
}

static void put_outcome(unsigned set, struct tally_buffer *out)
{
	if (set & HIT)
		tally_buffer_text(out, " hit");
	if (set & MISS)
		tally_buffer_text(out, " miss");
}

void tally_data_level_text(uint64_t data_src, struct tally_buffer *out)
{
	static const char *const levels[NAMES_MAX] = { "N/A",
						       NULL,
						       NULL,
						       "L1",
						       "LFB/MAB",
						       "L2",
						       "L3",
						       "Local RAM",
						       "Remote RAM (1 hop)",
						       "Remote RAM (2 hops)",
						       "Remote Cache (1 hop)",
						       "Remote Cache (2 hops)",
						       "I/O",
						       "Uncached" };
	static const char *const numbers[16] = {
		[9] = "CXL",  [10] = "I/O",  [11] = "Any cache", [12] = "LFB/MAB",
		[13] = "RAM", [14] = "PMEM", [15] = "N/A"
	};
	static const char *const distances[8] = { [1] = "core, same node",
						  "node, same socket",
						  "socket, same board",
						  "board",
						  "5 hops",
						  "6 hops",
						  "7 hops" };
	unsigned level = field(data_src, 5, 14), number = field(data_src, 33, 4),
		 hops = field(data_src, 43, 3);
	bool is_remote = field(data_src, 37, 1), is_first = true,
	     is_empty = !is_remote && !hops && !number;
	if (is_remote)
		tally_buffer_text(out, "Remote ");
	if (hops) /* `hops` says more than the set does */
		tally_buffer_printf(out, "%s ", distances[hops]);
	else
		is_first = put_set(level, levels, NAMES_MAX, true, out);
	if (number && numbers[number])
		put_or(&is_first, numbers[number], out);
	else if (number)
		tally_buffer_printf(out, "%sL%u", is_first ? "" : " or ", number);
	if (is_empty && is_first)
		tally_buffer_text(out, "N/A");
	put_outcome(level, out);
}

void tally_data_snoop_text(uint64_t data_src, struct tally_buffer *out)
{
	static const char *const snoops[7] = {
		"N/A", "None", "Hit", "Miss", "HitM", "Fwd", "Peer"
	};
	unsigned snoop = field(data_src, 19, 5) | field(data_src, 38, 2) << 5;
	if (put_set(snoop, snoops, 7, true, out))
		tally_buffer_text(out, "N/A");
}

void tally_data_tlb_text(uint64_t data_src, struct tally_buffer *out)
{
	static const char *const translations[7] = { "N/A", NULL,     NULL,   "L1",
						     "L2",  "Walker", "Fault" };
	unsigned translation = field(data_src, 26, 7);
	if (put_set(translation, translations, 7, true, out))
		tally_buffer_text(out, "N/A");
	put_outcome(translation, out);
}

void tally_data_lock_text(uint64_t data_src, struct tally_buffer *out)
{
	unsigned lock = field(data_src, 24, 2);
	if (lock & 1)
		tally_buffer_text(out, "N/A");
	else
		tally_buffer_text(out, lock & 2 ? "Yes" : "No");
}

void tally_data_block_text(uint64_t data_src, struct tally_buffer *out)
{
	static const char *const words[4] = { "N/A", "Data", "Addr", "Data Addr" };
	unsigned blocked = field(data_src, 40, 3);
	tally_buffer_text(out, words[blocked & 1 ? 0 : blocked >> 1]);
}

void tally_data_source_text(uint64_t data_src, struct tally_buffer *out)
{
	static const char *const operations[5] = { "N/A", "LOAD", "STORE", "PFETCH", "EXEC" };
	unsigned operation = field(data_src, 0, 5);
	tally_buffer_printf(out, "|OP %s|LVL ",
			    operation ? operations[__builtin_ctz(operation)] : "No");
	tally_data_level_text(data_src, out);
	tally_buffer_text(out, "|SNP ");
	tally_data_snoop_text(data_src, out);
	tally_buffer_text(out, "|TLB ");
	tally_data_tlb_text(data_src, out);
	tally_buffer_text(out, "|LCK ");
	tally_data_lock_text(data_src, out);
	tally_buffer_text(out, "|BLK  "); /* two blanks, as perf prints it */
	tally_data_block_text(data_src, out);
}

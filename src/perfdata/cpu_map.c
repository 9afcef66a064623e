#include "perfdata/cpu_map.h"

enum { LIST, MASK, RANGE };

struct run {
	long first, last; /* first > last: empty */
	bool any;
	struct tally_buffer *out;
};

static void end_run(struct run *run)
{
	if (run->first > run->last)
		return;
	tally_buffer_printf(run->out, run->last > run->first ? "%s%ld-%ld" : "%s%ld",
			    run->any ? "," : "", run->first, run->last);
	run->any = true;
}

static void add(struct run *run, long cpu)
{
	if (run->first <= run->last && cpu == run->last + 1) {
		run->last = cpu;
		return;
	}
	end_run(run);
	run->first = run->last = cpu;
}

static void add_mask(struct tally_reader *reader, struct run *run)
{
	unsigned words = tally_reader_u16(reader), size = tally_reader_u16(reader);
	if (size == 8)
		tally_reader_u16(reader); /* padding that aligns the words */
	else
		reader->failed |= size != 4;
	for (unsigned i = 0; i < words && !reader->failed; i++) {
		uint64_t word = size == 8 ? tally_reader_u64(reader) : tally_reader_u32(reader);
		for (; word; word &= word - 1)
			add(run, (long)i * 8 * (long)size + __builtin_ctzll(word));
	}
}

void tally_cpu_map_text(struct tally_reader *reader, struct tally_buffer *out)
{
	struct run run = { .first = 0, .last = -2, .out = out };
	unsigned type = tally_reader_u16(reader);
	if (type == LIST) {
		for (unsigned left = tally_reader_u16(reader); left && !reader->failed; left--) {
			long cpu = (int16_t)tally_reader_u16(reader);
			if (!reader->failed)
				add(&run, cpu);
		}
	} else if (type == MASK) {
		add_mask(reader, &run);
	} else if (type == RANGE) {
		bool has_any = tally_reader_u8(reader);
		tally_reader_u8(reader);
		long first = tally_reader_u16(reader), last = tally_reader_u16(reader);
		if (has_any && !reader->failed)
			add(&run, -1);
		if (first <= last && !reader->failed) {
			add(&run, first);
			run.last = last;
		}
	} else {
		reader->failed = true;
	}
	end_run(&run);
}

#include "abi/record.h"

enum { BAD_MESSAGE = 74 };

void tally_sample_layout_init(struct tally_sample_layout *layout, const struct tally_attr *attr)
{
	struct tally_sample_layout out = { .type = attr->sample_type,
					   .fixed_period = tally_attr_period(attr) };
	const struct { uint64_t bit; uint8_t *place; } fields[] = {
		{ TALLY_SAMPLE_IDENTIFIER, &out.identifier }, { TALLY_SAMPLE_IP, &out.ip },
		{ TALLY_SAMPLE_TID, &out.tid },               { TALLY_SAMPLE_TIME, &out.time },
		{ TALLY_SAMPLE_ADDR, &out.addr },             { TALLY_SAMPLE_ID, &out.id },
		{ TALLY_SAMPLE_STREAM_ID, &out.stream_id },   { TALLY_SAMPLE_CPU, &out.cpu },
		{ TALLY_SAMPLE_PERIOD, &out.period },
	};
	uint64_t known = TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_RAW;
	uint8_t word = 1;
	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		known |= fields[i].bit;
		if (out.type & fields[i].bit)
			*fields[i].place = word++;
	}
	out.words = word;
	out.has_chain = out.type & TALLY_SAMPLE_CALLCHAIN;
	out.has_raw = out.type & TALLY_SAMPLE_RAW;
	out.is_plain = !(out.type & ~known);
	*layout = out;
}

/* Clears in pieces, which become a few wide stores: for the whole struct, compilers choose an
 * instruction that is slow to start. */
static inline void clear(struct tally_sample *sample)
{
	enum { PIECE = 64, ALL = sizeof(*sample) };
	uint8_t *bytes = (uint8_t *)sample;
	for (unsigned at = 0; at + PIECE <= ALL; at += PIECE) {
		__builtin_memset(bytes + at, 0, PIECE);
		__asm__("" ::: "memory"); /* so that the compiler doesn't join them again */
	}
	__builtin_memset(bytes + ALL / PIECE * PIECE, 0, ALL % PIECE);
}

static inline uint64_t word_at(const uint8_t *bytes, unsigned index)
{
	uint64_t value;
	__builtin_memcpy(&value, bytes + 8 * index, sizeof(value));
	return value;
}

static inline void halves_at(const uint8_t *bytes, unsigned index, uint32_t halves[2])
{
	__builtin_memcpy(halves, bytes + 8 * index, 2 * sizeof(*halves));
}

/* Takes size and bytes.  The padding to whole words must be present as well. */
static int take_raw(struct tally_sample *sample, const uint8_t *bytes, size_t left)
{
	const size_t head = sizeof(sample->raw_size);
	if (left < head)
		return -BAD_MESSAGE;
	__builtin_memcpy(&sample->raw_size, bytes, head);
	if (sample->raw_size > left - head || ((head + sample->raw_size + 7) & ~(size_t)7) > left)
		return -BAD_MESSAGE;
	sample->raw = bytes + head;
	return 0;
}

int tally_sample_decode(const struct tally_sample_layout *layout, const void *record_bytes,
			size_t size, struct tally_record *record)
{
	const uint8_t *bytes = record_bytes;
	struct tally_sample *sample = &record->sample;
	size_t fixed = 8 * (size_t)layout->words, least = fixed + (layout->has_chain ? 8 : 0);
	uint32_t halves[2];
	if (size < sizeof(record->header))
		return -BAD_MESSAGE;
	__builtin_memcpy(&record->header, bytes, sizeof(record->header));
	if (record->header.size > size || record->header.size < least)
		return -BAD_MESSAGE;
	record->sample_id = (struct tally_sample_id){ 0 };
	clear(sample);
	sample->type = layout->type;
	if (layout->identifier)
		sample->id = word_at(bytes, layout->identifier);
	if (layout->ip)
		sample->ip = word_at(bytes, layout->ip);
	if (layout->tid) {
		halves_at(bytes, layout->tid, halves);
		sample->pid = halves[0];
		sample->tid = halves[1];
	}
	if (layout->time)
		sample->time = word_at(bytes, layout->time);
	if (layout->addr)
		sample->addr = word_at(bytes, layout->addr);
	if (layout->id)
		sample->id = word_at(bytes, layout->id);
	if (layout->stream_id)
		sample->stream_id = word_at(bytes, layout->stream_id);
	if (layout->cpu) {
		halves_at(bytes, layout->cpu, halves);
		sample->cpu = halves[0];
	}
	sample->period = layout->period ? word_at(bytes, layout->period) : layout->fixed_period;
	if (layout->has_chain) {
		sample->chain_length = word_at(bytes, layout->words);
		if (sample->chain_length > (record->header.size - least) / 8)
			return -BAD_MESSAGE;
		sample->chain = (const uint64_t *)(const void *)(bytes + least);
		least += 8 * (size_t)sample->chain_length;
	}
	return layout->has_raw ? take_raw(sample, bytes + least, record->header.size - least) : 0;
}

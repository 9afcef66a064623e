/* A JIT's dump, made record by record. */
#ifndef TALLY_JIT_DUMP_MAKER_H
#define TALLY_JIT_DUMP_MAKER_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING };

struct maker {
	struct tally_buffer bytes;
	bool swap;
	size_t record;
};

static inline void u32(struct maker *maker, uint32_t value)
{
	value = maker->swap ? __builtin_bswap32(value) : value;
	tally_buffer_append(&maker->bytes, &value, sizeof(value));
}

static inline void u64(struct maker *maker, uint64_t value)
{
	value = maker->swap ? __builtin_bswap64(value) : value;
	tally_buffer_append(&maker->bytes, &value, sizeof(value));
}

static inline void text(struct maker *maker, const char *value)
{
	tally_buffer_append(&maker->bytes, value, strlen(value) + 1);
}

static inline void header(struct maker *maker)
{
	u32(maker, 0x4a695444);
	u32(maker, 1);
	u32(maker, 40);
	u32(maker, 62);
	u32(maker, 0);
	u32(maker, 4711);
	u64(maker, 5);
	u64(maker, 0);
}

static inline void begin(struct maker *maker, uint32_t type, uint64_t time)
{
	maker->record = maker->bytes.length;
	u32(maker, type);
	u32(maker, 0);
	u64(maker, time);
}

static inline void end(struct maker *maker)
{
	uint32_t size = (uint32_t)(maker->bytes.length - maker->record);
	size = maker->swap ? __builtin_bswap32(size) : size;
	memcpy(maker->bytes.bytes + maker->record + 4, &size, sizeof(size));
}

/* An .eh_frame for `size` bytes of code, whose CFA is rsp + `cfa` everywhere. */
static inline void unwinding(struct maker *maker, uint64_t time, uint32_t size, uint8_t cfa)
{
	enum { FRAME_BYTES = 48, ADDRESS_AT = 32 };
	uint8_t frame[FRAME_BYTES] = {
		20,   0,    0, 0, 0,    0, 0, 0, 1,  'z', 'R', 0, 1,  0x78, 16, 1,
		0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0, 20, 0,   0,   0, 28, 0,    0,  0,
	};
	uint32_t to_code = -((size + 7) / 8 * 8 + ADDRESS_AT);
	memcpy(frame + ADDRESS_AT, &to_code, sizeof(to_code));
	memcpy(frame + ADDRESS_AT + 4, &size, sizeof(size));
	frame[ADDRESS_AT + 9] = 0x0e; /* def_cfa_offset */
	frame[ADDRESS_AT + 10] = cfa;
	begin(maker, UNWINDING, time);
	u64(maker, FRAME_BYTES);
	u64(maker, 0);
	u64(maker, FRAME_BYTES);
	tally_buffer_append(&maker->bytes, frame, sizeof(frame));
	end(maker);
}

static inline void load(struct maker *maker, uint64_t time, uint64_t address, uint64_t size,
			uint64_t number, const char *name)
{
	begin(maker, LOAD, time);
	u32(maker, 4711);
	u32(maker, 4711);
	u64(maker, address);
	u64(maker, address);
	u64(maker, size);
	u64(maker, number);
	text(maker, name);
	for (uint64_t i = 0; i < size; i++)
		tally_buffer_char(&maker->bytes, name[0]);
	end(maker);
}

static inline void move(struct maker *maker, uint64_t time, uint64_t from, uint64_t to,
			uint64_t number)
{
	begin(maker, MOVE, time);
	u32(maker, 4711);
	u32(maker, 4711);
	u64(maker, to);
	u64(maker, from);
	u64(maker, to);
	u64(maker, 1);
	u64(maker, number);
	end(maker);
}

#endif

#include "abi/byte_swap.h"

#include <limits.h>

/* The deepest nesting in a recording: the capabilities of a PMU within those of all PMUs. */
enum { NESTING_MAX = 4 };

static void *take(struct tally_swapper *swapper, uint64_t bytes)
{
	if ((uint64_t)(swapper->end - swapper->at) < bytes) {
		swapper->at = swapper->end;
		return NULL;
	}
	void *field = swapper->at;
	swapper->at += bytes;
	return field;
}

uint16_t tally_swap_u16(struct tally_swapper *swapper)
{
	void *field = take(swapper, sizeof(uint16_t));
	uint16_t value = 0;
	if (!field)
		return 0;
	__builtin_memcpy(&value, field, sizeof(value));
	value = __builtin_bswap16(value);
	__builtin_memcpy(field, &value, sizeof(value));
	return value;
}

uint32_t tally_swap_u32(struct tally_swapper *swapper)
{
	void *field = take(swapper, sizeof(uint32_t));
	uint32_t value = 0;
	if (!field)
		return 0;
	__builtin_memcpy(&value, field, sizeof(value));
	value = __builtin_bswap32(value);
	__builtin_memcpy(field, &value, sizeof(value));
	return value;
}

uint64_t tally_swap_u64(struct tally_swapper *swapper)
{
	void *field = take(swapper, sizeof(uint64_t));
	uint64_t value = 0;
	if (!field)
		return 0;
	__builtin_memcpy(&value, field, sizeof(value));
	value = __builtin_bswap64(value);
	__builtin_memcpy(field, &value, sizeof(value));
	return value;
}

void tally_swap_skip(struct tally_swapper *swapper, uint64_t bytes)
{
	take(swapper, bytes);
}

static void swap_one(struct tally_swapper *swapper, char field)
{
	if (field == '2')
		tally_swap_u16(swapper);
	else if (field == '4')
		tally_swap_u32(swapper);
	else if (field == '8')
		tally_swap_u64(swapper);
	else if (field == 's')
		tally_swap_skip(swapper, tally_swap_u32(swapper));
}

/* Returns the position behind the brace that closes the one before `fields`. */
static const char *behind_braces(const char *fields)
{
	unsigned depth = 1;
	for (; *fields && depth; fields++)
		depth += *fields == '{' ? 1 : *fields == '}' ? UINT_MAX : 0;
	return fields;
}

void tally_swap_fields(struct tally_swapper *swapper, const char *fields)
{
	struct { const char *start; uint32_t left; } loops[NESTING_MAX];
	unsigned depth = 0;
	while (*fields && swapper->at < swapper->end) {
		if (*fields == '{') {
			uint32_t count = tally_swap_u32(swapper);
			if (!count) {
				fields = behind_braces(fields + 1);
				continue;
			}
			loops[depth].start = ++fields;
			loops[depth++].left = count;
		} else if (*fields == '}') {
			bool again = --loops[depth - 1].left;
			fields = again ? loops[depth - 1].start : fields + 1;
			depth -= !again;
		} else if (*fields == '*') {
			swap_one(swapper, fields[-1]);
		} else {
			swap_one(swapper, *fields++);
		}
	}
}

/* ---- attributes ---------------------------------------------------------- */

static uint64_t mirror(uint64_t bits)
{
	uint64_t out = 0;
	for (unsigned i = 0; i < 64; i++)
		out |= (bits >> i & 1) << (63 - i);
	return out;
}

/* A field of several bits keeps the order of its own bits. */
static uint64_t mirror_flags(uint64_t flags)
{
	uint64_t out = mirror(flags),
		 precise = (out & TALLY_ATTR_PRECISE_IP) >> TALLY_ATTR_PRECISE_IP_SHIFT;
	precise = precise >> 1 | (precise & 1) << 1;
	return (out & ~TALLY_ATTR_PRECISE_IP) | precise << TALLY_ATTR_PRECISE_IP_SHIFT;
}

void tally_attr_swap(void *attr, size_t size)
{
	enum { FLAGS_END = 48 };
	struct tally_swapper swapper = { attr, (uint8_t *)attr + size };
	tally_swap_fields(&swapper, "44888"
				    "88"
				    "44888"
				    "8"
				    "448"
				    "42244"
				    "88");
	_Static_assert(offsetof(struct tally_attr, flags) + sizeof(uint64_t) == FLAGS_END, "flags");
	if (size < FLAGS_END)
		return;
	uint64_t flags;
	uint8_t *at = (uint8_t *)attr + offsetof(struct tally_attr, flags);
	__builtin_memcpy(&flags, at, sizeof(flags));
	flags = mirror_flags(flags);
	__builtin_memcpy(at, &flags, sizeof(flags));
}

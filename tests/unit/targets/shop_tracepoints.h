/* Tracepoints of a made-up program, with a field of every kind: C99 and C++. */
#ifndef TALLY_SHOP_TRACEPOINTS_H
#define TALLY_SHOP_TRACEPOINTS_H

#include "tally/tracepoint.h"

#include <stdbool.h>
#include <string.h>

enum shop_state { SHOP_OPEN, SHOP_CLOSED = 7 };
#define SHOP_URGENT 4

TALLY_TRACE_CLASS(order,
		  TALLY_PROTO(uint64_t id, int32_t customer, const char *article,
			      const uint64_t *parts, unsigned count),
		  TALLY_ARGS(id, customer, article, parts, count),
		  TALLY_FIELDS(TALLY_FIELD(uint64_t, id), TALLY_FIELD(int32_t, customer),
			       TALLY_STRING(article, article),
			       TALLY_DYNAMIC(uint64_t, parts, count), TALLY_STRING(same, article)),
		  TALLY_ASSIGN(entry->id = id; entry->customer = customer;
			       tally_dynamic_copy(entry, parts, parts);),
		  TALLY_PRINT("id=%llu customer=%d article=%s "
			      "bytes=%u",
			      (unsigned long long)REC->id, REC->customer, __get_str(article),
			      __get_dynamic_array_len(parts)))
TALLY_TRACE_EVENT(order, order_placed)
TALLY_TRACE_EVENT(order, order_paid)

TALLY_TRACE_CLASS_WITH(
	every,
	TALLY_PROTO(int64_t number, enum shop_state state, const void *where, const char *who),
	TALLY_ARGS(number, state, where, who),
	TALLY_FIELDS(TALLY_FIELD(uint8_t, u8), TALLY_FIELD(int8_t, s8), TALLY_FIELD(uint16_t, u16),
		     TALLY_FIELD(int16_t, s16), TALLY_FIELD(uint32_t, u32),
		     TALLY_FIELD(int32_t, s32), TALLY_FIELD(uint64_t, u64),
		     TALLY_FIELD(int64_t, s64), TALLY_FIELD(bool, lit),
		     TALLY_FIELD(enum shop_state, state), TALLY_POINTER(where),
		     TALLY_ARRAY(char, who, 8), TALLY_ARRAY(int16_t, three, 3)),
	TALLY_ASSIGN(entry->u8 = (uint8_t)number; entry->s8 = (int8_t)number;
		     entry->u16 = (uint16_t)number; entry->s16 = (int16_t)number;
		     entry->u32 = (uint32_t)number; entry->s32 = (int32_t)number;
		     entry->u64 = (uint64_t)number; entry->s64 = number; entry->lit = number != 0;
		     entry->state = state; entry->where = where;
		     memcpy(entry->who, who, sizeof(entry->who));
		     entry->three[1] = (int16_t)number;),
	TALLY_PRINT(
		"u8=%u s8=%hhd u16=%x s16=%hd s32=%-6d| u64=%llu s64=%lld lit=%d state=%s who=%s flags=%s hex=%s",
		REC->u8, REC->s8, REC->u16, REC->s16, REC->s32, (unsigned long long)REC->u64,
		(long long)REC->s64, REC->lit,
		__print_symbolic(REC->state, { SHOP_OPEN, "open" }, { SHOP_CLOSED, "closed" }),
		REC->who,
		__print_flags(REC->u8 & 15, "|", { 1, "read" }, { SHOP_URGENT, "urgent" }),
		__print_hex(REC->three, 6)),
	TALLY_HIT(), TALLY_CONSTANTS(SHOP_OPEN, SHOP_CLOSED, SHOP_URGENT))
TALLY_TRACE_EVENT(every, every_kind)

TALLY_TRACE_CLASS_WITH(work,
	TALLY_PROTO(uint64_t units, const void *at, struct tally_engine_task *worker),
	TALLY_ARGS(units, at, worker),
	TALLY_FIELDS(TALLY_FIELD(uint32_t, units)),
	TALLY_ASSIGN(entry->units = (uint32_t)units;),
	TALLY_PRINT("units=%u", REC->units),
	TALLY_HIT(tally_count(units); tally_address(at); tally_task(worker)),
	TALLY_CONSTANTS(SHOP_OPEN))
TALLY_TRACE_EVENT(work, work_done)

TALLY_TRACE_CLASS(bulk, TALLY_PROTO(unsigned size), TALLY_ARGS(size),
		  TALLY_FIELDS(TALLY_FIELD(uint32_t, size), TALLY_DYNAMIC(char, bytes, size)),
		  TALLY_ASSIGN(entry->size = size; memset(tally_dynamic(entry, bytes), 'x', size);),
		  TALLY_PRINT("size=%u bytes=%s", REC->size,
			      __print_array(__get_dynamic_array(bytes), REC->size, 1)))
TALLY_TRACE_EVENT(bulk, bulk_sent)

TALLY_TRACE_GROUP(shop, order_placed, order_paid, every_kind, work_done, bulk_sent)

#define SHOP_FORMAT "u"
TALLY_TRACE_CLASS(macro_text,
	TALLY_PROTO(unsigned size),
	TALLY_ARGS(size),
	TALLY_FIELDS(TALLY_FIELD(uint32_t, size)),
	TALLY_ASSIGN(entry->size = size;),
	TALLY_PRINT("size=%" SHOP_FORMAT, REC->size))
TALLY_TRACE_EVENT(macro_text, unreadable)
TALLY_TRACE_GROUP(unreadable, unreadable)

#endif

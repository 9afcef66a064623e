/* The tracepoints of a small shop. */
#ifndef SHOP_TRACEPOINTS_H
#define SHOP_TRACEPOINTS_H

#include <tally/tracepoint.h>

enum shop_state { SHOP_PLACED, SHOP_PAID, SHOP_SENT };

TALLY_TRACE_CLASS_WITH(order,
		       TALLY_PROTO(uint64_t id, enum shop_state state, const char *article,
				   unsigned cents),
		       TALLY_ARGS(id, state, article, cents),
		       TALLY_FIELDS(TALLY_FIELD(uint64_t, id), TALLY_FIELD(enum shop_state, state),
				    TALLY_FIELD(uint32_t, cents), TALLY_STRING(article, article)),
		       TALLY_ASSIGN(entry->id = id; entry->state = state; entry->cents = cents;),
		       TALLY_PRINT("order=%llu %s article=%s cents=%u", (unsigned long long)REC->id,
				   __print_symbolic(REC->state, { SHOP_PLACED, "placed" },
						    { SHOP_PAID, "paid" }, { SHOP_SENT, "sent" }),
				   __get_str(article), REC->cents),
		       TALLY_HIT(tally_count(cents)), /* counting the event adds up the money */
		       TALLY_CONSTANTS(SHOP_PLACED, SHOP_PAID, SHOP_SENT))

TALLY_TRACE_EVENT(order, order_changed)
TALLY_TRACE_EVENT(order, order_lost)
TALLY_TRACE_GROUP(shop, order_changed, order_lost)

#endif

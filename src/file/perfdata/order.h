/* Gives records in time order, by FINISHED_ROUND: no later record can be earlier than one that was
 * written two rounds ago.
 *
 * A recording whose records carry no time is given in file order.  Side-band records come before
 * samples of equal time, so a lookup of a sample's address finds its mapping.
 */
#ifndef TALLY_PERFDATA_ORDER_H
#define TALLY_PERFDATA_ORDER_H

#include "perfdata/perfdata.h"

struct tally_order;
struct tally_block;

int tally_order_new(struct tally_perfdata *data, struct tally_order **out, struct tally_error *err);

/* Gets the next record in time order.  Returns 1, 0 at the end, or -errno.  The record is valid
 * until the next call. */
int tally_order_next(struct tally_order *order, struct tally_raw_record *record,
		     struct tally_error *err);

/* Returns true if the bytes of the record given last can stay valid beyond the next call.  `*block`
 * is the block that they are in, for tally_block_hold(), or NULL when they stay valid while the
 * recording is open. */
bool tally_order_block(const struct tally_order *order, struct tally_block **block);

/* Drops a block that the caller held. */
void tally_order_drop(struct tally_order *order, struct tally_block *block);

void tally_order_free(struct tally_order *order);

#endif

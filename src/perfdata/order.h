/* Records in the order of their time, by FINISHED_ROUND: what was written two rounds ago can't be
 * overtaken.
 *
 * A recording whose records carry no time is given in file order.  Side-band records of equal time
 * come before samples, so that a map is known before an address in it is looked up.
 */
#ifndef TALLY_PERFDATA_ORDER_H
#define TALLY_PERFDATA_ORDER_H

#include "perfdata/perfdata.h"

struct tally_order;
struct tally_block;

int tally_order_new(struct tally_perfdata *data, struct tally_order **out, struct tally_error *err);

/* The next record in order of time: 1, 0 at the end, or -errno.  Valid until the next call. */
int tally_order_next(struct tally_order *order, struct tally_raw_record *record,
		     struct tally_error *err);

/* Whether the bytes of the record that was given last may stay valid for longer: `*block` is what
 * they lie in, for tally_block_hold(), or NULL where they stay as long as the recording is open. */
bool tally_order_block(const struct tally_order *order, struct tally_block **block);

/* Of a block that was held. */
void tally_order_drop(struct tally_order *order, struct tally_block *block);

void tally_order_free(struct tally_order *order);

#endif

/* What of a recording is needed to name its places: all records but samples, and of these one or
 * more for each place.
 *
 * A recorder that keeps it needs not read millions of samples again when the recording has ended:
 * the excerpt is a recording's data by itself, in the order of the file, and gives a reader the
 * same places (src/profile/place_table.h), as sure of their maps, as the whole does.  The periods
 * of the samples that it leaves out are added to one of their leaf's that it has, of which it has
 * two where there were more, so that it tells which functions most of each event is in, too.
 *
 * It is given up, and has nothing then, where most samples have new places (of ever new processes,
 * of code that is ever new), and where they have places that are not of their chains, or that a
 * JIT's dump tells of by their time.  Numbers of places may be others than the whole's: of several
 * CPUs' samples one that comes first in the file is kept, not the oldest.  Not thread-safe.
 */
#ifndef TALLY_SESSION_RECORD_EXCERPT_H
#define TALLY_SESSION_RECORD_EXCERPT_H

#include "abi/record.h"
#include "base/buffer.h"
#include "base/map.h"

struct tally_record_excerpt;

/* `attrs` are those of the recording's events, as it is written, the last of which is the
 * side-band's; `event_of_id` has their numbers by the ids that samples begin with
 * (TALLY_SAMPLE_IDENTIFIER, which all have, as IP, TID, TIME and PERIOD) and must stay.  NULL when
 * memory is out, or where the events' samples can't be told by their chains. */
struct tally_record_excerpt *tally_record_excerpt_new(const struct tally_attr *const *attrs,
						      size_t count,
						      const struct tally_map *event_of_id);
void tally_record_excerpt_free(struct tally_record_excerpt *excerpt); /* NULL is fine */

/* One or more records as they are written, none of which is a SAMPLE, else it is given up.  Those
 * of a change must come before samples that are younger. */
void tally_record_excerpt_add(struct tally_record_excerpt *excerpt, const void *records,
			      size_t size);

/* A whole SAMPLE as it is written, 8-byte aligned. */
void tally_record_excerpt_add_sample(struct tally_record_excerpt *excerpt, const void *record);

/* Hands the records over: they are the caller's to release.  False where it has been given up. */
bool tally_record_excerpt_take(struct tally_record_excerpt *excerpt, struct tally_buffer *out);

#endif

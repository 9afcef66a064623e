/* The part of a recording that is needed to name its places: all records except samples, and one or
 * more samples for each place.
 *
 * With an excerpt, a recorder needn't read millions of samples again at the end.  The excerpt is a
 * recording's data by itself, in the file's order.  It gives a reader the same places
 * (src/read/naming/naming.h) as the whole data, with the same certainty about their mappings.  The
 * period of a sample that is left out is added to a kept sample with the same leaf; leaves with
 * several samples have two in the excerpt.  So the excerpt also tells which functions have most of
 * each event.
 *
 * It is given up, and empty then, when most samples have new places (of ever new processes or
 * code), and when samples have places outside their chains or in a JIT's dump, which depend on the
 * time.  Numbers of places may differ from those of the whole data: of samples from several CPUs,
 * the excerpt keeps the first in the file, not the oldest.  Not thread-safe.
 */
#ifndef TALLY_RECORDER_EXCERPT_H
#define TALLY_RECORDER_EXCERPT_H

#include "abi/abi.h"
#include "base/buffer.h"
#include "base/map.h"

struct tally_recorder_excerpt;

/* Makes an excerpt.  `attrs` are the attributes of the recording's events as written; the last is
 * the side-band's.  `event_of_id` maps the ids at the start of samples to indices of `attrs`, and
 * must outlive the excerpt.  All samples must have TALLY_SAMPLE_IDENTIFIER, IP, TID, TIME and
 * PERIOD.  Returns NULL if memory runs out, or if the events' samples have places outside their
 * chains. */
struct tally_recorder_excerpt *tally_recorder_excerpt_new(const struct tally_attr *const *attrs,
							  size_t count,
							  const struct tally_map *event_of_id);
void tally_recorder_excerpt_free(struct tally_recorder_excerpt *excerpt); /* accepts NULL */

/* Adds one or more records as they are written.  A SAMPLE among them gives the excerpt up.  Records
 * of a change must come before samples that are younger. */
void tally_recorder_excerpt_add(struct tally_recorder_excerpt *excerpt, const void *records,
				size_t size);

/* Adds a whole SAMPLE as it is written, 8-byte aligned. */
void tally_recorder_excerpt_add_sample(struct tally_recorder_excerpt *excerpt, const void *record);

/* Moves the records to `out`, which the caller releases.  Returns false when the excerpt was given
 * up. */
bool tally_recorder_excerpt_take(struct tally_recorder_excerpt *excerpt, struct tally_buffer *out);

#endif

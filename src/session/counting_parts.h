/* What the files of counting share. */
#ifndef TALLY_SESSION_COUNTING_PARTS_H
#define TALLY_SESSION_COUNTING_PARTS_H

#include "session/counting.h"

static inline struct tally_count_slot *tally_counting_slot(const struct tally_counting *c,
							   size_t place, size_t event)
{
	return &c->slots[place * c->options->event_count + event];
}

/* counting_open.c */
int tally_counting_add_place(struct tally_counting *c, struct tally_count_place place);
void tally_counting_open_place(struct tally_counting *c, size_t place);
void tally_counting_close_slot(struct tally_counting *c, struct tally_count_slot *slot);
void tally_counting_close_cgroups(struct tally_counting *c);
void tally_counting_name_rows(struct tally_counting *c, size_t first_part);
/* What was counted part of the time is an estimate, however exact the part. */
const char *tally_counting_quality(const struct tally_counting *c, size_t event, bool was_scaled);

/* counting_parts.c */
/* Adds a part with its rows, which have no names yet; 0 or -ENOMEM. */
int tally_counting_add_part(struct tally_counting *c, const char *label);
/* Puts the place into its part, made if it is the first one there; 0 or -ENOMEM. */
int tally_counting_find_part(struct tally_counting *c, struct tally_count_place *place);

#endif

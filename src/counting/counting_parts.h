/* Shared by the files of counting. */
#ifndef TALLY_SESSION_COUNTING_PARTS_H
#define TALLY_SESSION_COUNTING_PARTS_H

#include "counting/counting.h"

static inline struct tally_count_slot *tally_counting_slot(const struct tally_counting *c,
							   size_t scope, size_t event)
{
	return &c->slots[scope * c->options->event_count + event];
}

/* counting_handles.c */
int tally_counting_add_scope(struct tally_counting *c, struct tally_count_scope scope);
void tally_counting_open_scope(struct tally_counting *c, size_t scope);
void tally_counting_close_slot(struct tally_counting *c, struct tally_count_slot *slot);
void tally_counting_close_cgroups(struct tally_counting *c);
void tally_counting_name_rows(struct tally_counting *c, size_t first_part);
/* Returns the quality of a count; a count of part of the time is always an estimate. */
const char *tally_counting_quality(const struct tally_counting *c, size_t event, bool was_scaled);

/* counting_parts.c */
/* Adds a part with its rows, not yet named.  Returns 0 or -ENOMEM. */
int tally_counting_add_part(struct tally_counting *c, const char *label);
/* Puts the scope into its part, which is made for the first scope in it.  Returns 0 or -ENOMEM. */
int tally_counting_find_part(struct tally_counting *c, struct tally_count_scope *scope);

#endif

/* Function names where there is little room: their end says most. */
#ifndef TALLY_OUTPUT_BRIEF_NAME_H
#define TALLY_OUTPUT_BRIEF_NAME_H

#include "base/buffer.h"

/* Appends the name, shortened if it is wider than `width` columns: `dots` replace template
 * arguments, then leading namespaces go: "Sorter<…>::bubble".  If room is left, some of the first
 * arguments stay, which tell instances apart.  The result may still be wider than `width`. */
void tally_brief_name(struct tally_buffer *out, const char *name, int width, const char *dots);

#endif

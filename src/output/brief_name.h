/* Function names where there is little room: their end says most. */
#ifndef TALLY_OUTPUT_BRIEF_NAME_H
#define TALLY_OUTPUT_BRIEF_NAME_H

#include "base/buffer.h"

/* Appends the name; where it is wider than `width` columns without the arguments of its templates,
 * of which some of the first come back if there is room, and without leading namespaces:
 * "Sorter<…>::bubble".  What is left may still be wider.  `dots` stands for what is left out. */
void tally_brief_name(struct tally_buffer *out, const char *name, int width, const char *dots);

#endif

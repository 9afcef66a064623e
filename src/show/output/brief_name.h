/* Shortens function names; the end of a name is its most useful part. */
#ifndef TALLY_OUTPUT_BRIEF_NAME_H
#define TALLY_OUTPUT_BRIEF_NAME_H

#include "base/buffer.h"

/* Appends the name, shortened if it is wider than `width` columns. First `dots` replace template
 * arguments, then leading namespaces are dropped: "Sorter<…>::bubble". If room is left, it keeps
 * some of the first arguments, because they tell instances of a template apart. The result may
 * still be wider than `width`. */
void tally_brief_name(struct tally_buffer *out, const char *name, int width, const char *dots);

#endif

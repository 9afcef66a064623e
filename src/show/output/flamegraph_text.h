/* Names and numbers as a flame graph shows them. Names are untrusted: the output is valid UTF-8
 * without control bytes, and can't end the text, attribute, script or string that contains it. For
 * flamegraph_*.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_TEXT_H
#define TALLY_OUTPUT_FLAMEGRAPH_TEXT_H

#include "base/buffer.h"

/* Escapes text for XML or HTML content and for quoted attributes. */
void tally_flame_markup_text(struct tally_buffer *out, const char *text);

/* Writes a JSON string with its quotes, safe inside <script> in HTML and in XML. */
void tally_flame_json_text(struct tally_buffer *out, const char *text);

/* Writes as much of a name as fits into `columns` cells of a fixed-width font, as markup: the whole
 * name, the name without its parameters, or the name cut with "…". Writes nothing if fewer than
 * three cells are available. */
void tally_flame_label(struct tally_buffer *out, const char *name, unsigned columns);

/* Writes "1.24 s", "618 samples" or "12.3 M cycles". `unit` is the stacks' unit; `event` names what
 * "events" counts. */
void tally_flame_weight(struct tally_buffer *out, double weight, const char *unit,
			const char *event);

#endif

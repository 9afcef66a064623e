/* Names and numbers as a flame graph shows them.  Names are untrusted: what comes out of here is
 * valid UTF-8 without control bytes, and can't end the text, attribute, script or string that it
 * stands in.  For flamegraph_*.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_TEXT_H
#define TALLY_OUTPUT_FLAMEGRAPH_TEXT_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

/* In XML or HTML text, and in quoted attributes. */
void tally_flame_markup_text(struct tally_buffer *out, const char *text);

/* As a JSON string with its quotes, safe inside of <script> in HTML and in XML. */
void tally_flame_json_text(struct tally_buffer *out, const char *text);

/* As much of a name as fits into `columns` cells of a fixed-width font, as markup text: whole,
 * without its parameters, or cut with "…"; nothing when fewer than three cells are there. */
void tally_flame_label(struct tally_buffer *out, const char *name, unsigned columns);

/* "1.24 s", "618 samples", "12.3 M cycles": `unit` is the stacks' unit, `event` names what "events"
 * are. */
void tally_flame_weight(struct tally_buffer *out, double weight, const char *unit,
			const char *event);

#endif

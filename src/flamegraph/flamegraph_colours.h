/* A flame graph's palette: the hue shows the kind of code, shades separate neighbours. For
 * flamegraph_*.c. */
#ifndef TALLY_OUTPUT_FLAMEGRAPH_COLOURS_H
#define TALLY_OUTPUT_FLAMEGRAPH_COLOURS_H

#include "base/buffer.h"
#include "profile/stacks.h"

#include <stdint.h>

enum { TALLY_FLAME_KINDS = TALLY_FRAME_KINDS + 1, TALLY_FLAME_SHADES = 4 };

struct tally_flame_theme {
	uint32_t fills[TALLY_FLAME_KINDS][TALLY_FLAME_SHADES]; /* 0xrrggbb */
	uint32_t ink;        /* text on fills */
	uint32_t background;
	uint32_t text, muted; /* text colours on the background */
};

extern const struct tally_flame_theme tally_flame_light, tally_flame_dark;

/* "program", …, "thread" */
extern const char *const tally_flame_kind_names[TALLY_FLAME_KINDS];

/* Returns a name's shade, which is the same in every graph. */
unsigned tally_flame_shade(const char *name);

/* Writes style rules for the static picture, in both themes: .pKS (kind, shade) and texts. */
void tally_flame_colour_rules(struct tally_buffer *out);

/* Writes the "palette" member of the data. */
void tally_flame_colour_json(struct tally_buffer *out);

#endif

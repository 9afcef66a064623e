/* The colours were made in OKLCH: one lightness and chroma per kind; shades are slightly lighter,
 * darker or shifted in hue. Kinds differ in lightness as well as in hue, so that people who can't
 * tell red from green can tell them apart. Every fill has a contrast of at least 4.5 to 1 with its
 * text (WCAG 2.2, 1.4.3), which a test computes. */
#include "flamegraph/flamegraph_internal.h"

const struct tally_flame_theme tally_flame_light = {
	.fills = {
		{ 0xf7ab64, 0xf5b571, 0xf5a05f, 0xfbb882 }, /* program */
		{ 0xf4de8c, 0xf2e69d, 0xf3d480, 0xfde9a8 }, /* library */
		{ 0xeb776c, 0xeb826e, 0xe56d6d, 0xed8881 }, /* kernel */
		{ 0x88dccb, 0x97dfd5, 0x81d5bf, 0xa6e3d4 }, /* jit */
		{ 0x93aae9, 0xa0afe7, 0x85a5e4, 0xa1b7e8 }, /* inlined */
		{ 0xd6cec3, 0xdbd4c8, 0xd0c7bc, 0xe2d9ce }, /* thread */
	},
	.ink = 0x1f1a14, .background = 0xfbf9f6, .text = 0x241f19, .muted = 0x6b6155,
};

const struct tally_flame_theme tally_flame_dark = {
	.fills = {
		{ 0x884c1e, 0x865529, 0x86451b, 0x895838 }, /* program */
		{ 0x7d6a2f, 0x7b703f, 0x7c6325, 0x827248 }, /* library */
		{ 0x852e2e, 0x85382f, 0x81262f, 0x863e3d }, /* kernel */
		{ 0x186059, 0x2c625f, 0x0b5c51, 0x39655e }, /* jit */
		{ 0x3d4b8a, 0x484f88, 0x324887, 0x465688 }, /* inlined */
		{ 0x3b3630, 0x3e3a34, 0x37312c, 0x423d37 }, /* thread */
	},
	.ink = 0xfffaf2, .background = 0x171513, .text = 0xefe9e0, .muted = 0xa89f93,
};

const char *const tally_flame_kind_names[TALLY_FLAME_KINDS] = {
	"program", "library", "kernel", "jit", "inlined", "thread",
};

unsigned tally_flame_shade(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return (hash >> 16) % TALLY_FLAME_SHADES;
}

static void write_rules(struct tally_buffer *out, const struct tally_flame_theme *theme,
			const char *root)
{
	for (unsigned kind = 0; kind < TALLY_FLAME_KINDS; kind++)
		for (unsigned shade = 0; shade < TALLY_FLAME_SHADES; shade++)
			tally_buffer_printf(out, "%s.p%u%u{fill:#%06x}", root, kind, shade,
					    theme->fills[kind][shade]);
	tally_buffer_printf(
		out, "%s.pi{fill:#%06x}%s.pb{fill:#%06x}%s.pt{fill:#%06x}%s.pm{fill:#%06x}\n", root,
		theme->ink, root, theme->background, root, theme->text, root, theme->muted);
}

void tally_flame_colour_rules(struct tally_buffer *out)
{
	write_rules(out, &tally_flame_light, "");
	tally_buffer_text(out, "@media (prefers-color-scheme:dark){");
	write_rules(out, &tally_flame_dark, ":root:not([data-theme=light]) ");
	tally_buffer_text(out, "}\n");
	write_rules(out, &tally_flame_dark, ":root[data-theme=dark] ");
}

static void write_theme(struct tally_buffer *out, const char *name,
			const struct tally_flame_theme *theme)
{
	tally_buffer_printf(out, "\"%s\":{\"fills\":[", name);
	for (unsigned kind = 0; kind < TALLY_FLAME_KINDS; kind++) {
		tally_buffer_text(out, kind ? ",[" : "[");
		for (unsigned shade = 0; shade < TALLY_FLAME_SHADES; shade++)
			tally_buffer_printf(out, "%s\"#%06x\"", shade ? "," : "",
					    theme->fills[kind][shade]);
		tally_buffer_char(out, ']');
	}
	tally_buffer_printf(out, "],\"ink\":\"#%06x\",\"background\":\"#%06x\"}", theme->ink,
			    theme->background);
}

void tally_flame_colour_json(struct tally_buffer *out)
{
	tally_buffer_text(out, "\"palette\":{");
	write_theme(out, "light", &tally_flame_light);
	tally_buffer_char(out, ',');
	write_theme(out, "dark", &tally_flame_dark);
	tally_buffer_char(out, '}');
}

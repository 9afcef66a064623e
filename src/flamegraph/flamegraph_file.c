/* The SVG and the HTML file, which share the picture, the data, the style and the script. */
#include "flamegraph/flamegraph_parts.h"

#include "flamegraph/flamegraph_colours.h"
#include "output/flamegraph_text.h"

#include <errno.h>

struct flame_parts {
	struct tally_buffer data, picture;
	unsigned height_px;
};

static int make_parts(struct tally_flame_drawing *drawing, struct flame_parts *parts,
		      struct tally_error *err)
{
	int status = tally_flame_drawing_trees(drawing, err);
	if (!status && tally_flame_data(drawing, &parts->data) < 0)
		status = tally_error_set(err, -ENOMEM,
					 "out of memory while writing the flame graph");
	if (!status)
		tally_flame_picture(drawing, &parts->picture, &parts->height_px);
	if (!status && parts->picture.failed)
		status = tally_error_set(err, -ENOMEM,
					 "out of memory while drawing the flame graph");
	return status;
}

static void release_parts(struct flame_parts *parts)
{
	tally_buffer_release(&parts->data);
	tally_buffer_release(&parts->picture);
}

static const char *theme_attribute(const struct tally_flame_drawing *drawing)
{
	static const char *const attributes[] = { "", " data-theme=\"light\"",
						  " data-theme=\"dark\"" };
	return attributes[drawing->options.theme];
}

static void append_part(struct tally_buffer *out, const struct tally_buffer *part)
{
	tally_buffer_append(out, tally_buffer_string(part), part->length);
}

static void append_svg_open(const struct tally_flame_drawing *drawing, unsigned height_px,
			    const char *attributes, struct tally_buffer *out)
{
	unsigned width = drawing->options.width_px;
	tally_buffer_printf(out,
			    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
			    "viewBox=\"0 0 %u %u\"%s>\n",
			    width, height_px, width, height_px, attributes);
}

static void append_title(const struct tally_flame_drawing *drawing, struct tally_buffer *out)
{
	tally_buffer_text(out, "<title>");
	tally_flame_markup_text(out, tally_buffer_string(&drawing->title));
	tally_buffer_text(out, "</title>\n");
}

static void write_rules(const struct tally_flame_drawing *drawing, struct tally_buffer *out)
{
	tally_flame_colour_rules(out);
	if (drawing->old.stacks)
		tally_flame_change_rules(out);
}

static const char *script_of(const struct tally_flame_drawing *drawing)
{
	return drawing->old.stacks ? tally_flamegraph_diff_js : tally_flamegraph_js;
}

static void write_svg(const struct tally_flame_drawing *drawing, const struct flame_parts *parts,
		      struct tally_buffer *out)
{
	tally_buffer_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	append_svg_open(drawing, parts->height_px, theme_attribute(drawing), out);
	append_title(drawing, out);
	/* Neither the script nor its data contains "]]>"; a test checks the script. */
	tally_buffer_printf(out, "<style><![CDATA[\n%s", tally_flamegraph_css);
	write_rules(drawing, out);
	tally_buffer_text(out, "]]></style>\n<g id=\"tally-picture\">\n");
	append_part(out, &parts->picture);
	tally_buffer_text(out, "</g>\n<script type=\"application/json\" id=\"tally-data\">");
	append_part(out, &parts->data);
	tally_buffer_printf(out, "</script>\n<script><![CDATA[\n%s]]></script>\n</svg>\n",
			    script_of(drawing));
}

static void write_html(const struct tally_flame_drawing *drawing, const struct flame_parts *parts,
		       struct tally_buffer *out)
{
	tally_buffer_printf(
		out,
		"<!DOCTYPE html>\n<html lang=\"en\"%s>\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n",
		theme_attribute(drawing));
	append_title(drawing, out);
	tally_buffer_printf(out, "<style>\n%s", tally_flamegraph_css);
	write_rules(drawing, out);
	tally_buffer_text(out, "</style>\n</head>\n<body>\n<noscript>\n");
	append_svg_open(drawing, parts->height_px, "", out);
	append_part(out, &parts->picture);
	tally_buffer_text(
		out, "</svg>\n</noscript>\n<script type=\"application/json\" id=\"tally-data\">");
	append_part(out, &parts->data);
	tally_buffer_printf(out, "</script>\n<script>\n%s</script>\n</body>\n</html>\n",
			    script_of(drawing));
}

typedef void write_function(const struct tally_flame_drawing *drawing,
			    const struct flame_parts *parts, struct tally_buffer *out);

static int draw(const struct tally_stacks *stacks, const struct tally_flamegraph_options *options,
		write_function *write, struct tally_buffer *out, struct tally_error *err)
{
	struct tally_flame_drawing drawing;
	struct flame_parts parts = { 0 };
	int status = tally_flame_drawing_init(&drawing, stacks, options, err);
	if (!status)
		status = make_parts(&drawing, &parts, err);
	if (!status)
		write(&drawing, &parts, out);
	if (!status && out->failed)
		status = tally_error_set(err, -ENOMEM,
					 "out of memory while writing the flame graph");
	release_parts(&parts);
	tally_flame_drawing_release(&drawing);
	return status;
}

int tally_flamegraph_svg(const struct tally_stacks *stacks,
			 const struct tally_flamegraph_options *options, struct tally_buffer *out,
			 struct tally_error *err)
{
	return draw(stacks, options, write_svg, out, err);
}

int tally_flamegraph_html(const struct tally_stacks *stacks,
			  const struct tally_flamegraph_options *options, struct tally_buffer *out,
			  struct tally_error *err)
{
	return draw(stacks, options, write_html, out, err);
}

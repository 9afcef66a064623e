/* The findings as text, group by group below headings.  Without UTF-8, the marks and dots are
 * ASCII. */
#include "output/output.h"

#include "base/terminal.h"
#include "base/text.h"

#include <string.h>

struct mark {
	const char *utf8, *ascii, *colour;
};

static const char *paint(const struct tally_doctor_style *style, const char *code)
{
	if (style->colours)
		return code;
	return "";
}

/* Texts of cures contain "…"; they are ASCII otherwise. */
static void put_text(struct tally_buffer *out, const struct tally_doctor_style *style,
		     const char *text)
{
	static const char dots[] = "…";
	char clean[1024];
	tally_terminal_clean_name(text, clean, sizeof(clean));
	const char *at = clean;
	for (const char *found; !style->utf8 && (found = strstr(at, dots));) {
		tally_buffer_append(out, at, (size_t)(found - at));
		tally_buffer_text(out, "...");
		at = found + sizeof(dots) - 1;
	}
	tally_buffer_text(out, at);
}

static void put_lines(struct tally_buffer *out, const struct tally_doctor_style *style,
		      const char *label, const char *text)
{
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");
		char one[1024];
		memcpy(one, line, length);
		one[length] = 0;
		tally_buffer_printf(out, "      %-6s ", label);
		label = ""; /* only the first line has it */
		put_text(out, style, one);
		tally_buffer_char(out, '\n');
		line += length + (line[length] == '\n');
	}
}

static void put_finding(struct tally_buffer *out, const struct tally_doctor_style *style,
			const struct tally_finding *finding)
{
	static const struct mark marks[] = {
		[TALLY_FINDING_OK] = { "✓", "ok", "\033[32m" },
		[TALLY_FINDING_LIMITED] = { "!", "! ", "\033[33m" },
		[TALLY_FINDING_MISSING] = { "✗", "x ", "\033[31m" },
	};
	const struct mark *mark = &marks[finding->state];
	tally_buffer_printf(out, "  %s%s%s ", paint(style, mark->colour),
			    style->utf8 ? mark->utf8 : mark->ascii, paint(style, "\033[0m"));
	tally_buffer_printf(out, finding->detail[0] ? "%-21s " : "%s", finding->title);
	put_text(out, style, finding->detail);
	tally_buffer_char(out, '\n');
	put_lines(out, style, "cause:", finding->cause);
	/* A verdict's cure is printed with its cause, further down. */
	if (finding->group != TALLY_FINDING_VERDICT)
		put_lines(out, style, "cure:", finding->cure);
}

static void put_machine(const struct tally_machine_facts *facts, struct tally_buffer *out)
{
	char clean[256];
	tally_buffer_printf(out, "Linux ");
	tally_terminal_clean_name(facts->kernel, clean, sizeof(clean));
	tally_buffer_printf(out, "%s %s, ", clean, facts->arch);
	tally_terminal_clean_name(facts->cpu.name, clean, sizeof(clean));
	if (clean[0])
		tally_buffer_printf(out, "%s, ", clean);
	tally_buffer_printf(out, "%zu CPU%s, user %u\n", facts->online_cpus,
			    tally_plural(facts->online_cpus), facts->user);
}

void tally_doctor_text(const struct tally_machine_facts *facts,
		       const struct tally_findings *findings,
		       const struct tally_doctor_style *style, struct tally_buffer *out)
{
	static const char *const headings[] = {
		[TALLY_FINDING_VERDICT] = "What works",
		[TALLY_FINDING_PRIVILEGE] = "Privileges",
		[TALLY_FINDING_HARDWARE] = "Hardware events",
		[TALLY_FINDING_KERNEL] = "Kernel symbols and tracepoints",
		[TALLY_FINDING_LIMIT] = "Limits",
	};
	put_machine(facts, out);
	for (unsigned group = 0; group < TALLY_FINDING_GROUPS; group++) {
		bool first = true;
		for (size_t i = 0; i < findings->count; i++) {
			if (findings->items[i].group != group)
				continue;
			if (first)
				tally_buffer_printf(out, "\n%s%s%s\n", paint(style, "\033[1m"),
						    headings[group], paint(style, "\033[0m"));
			first = false;
			put_finding(out, style, &findings->items[i]);
		}
	}
}

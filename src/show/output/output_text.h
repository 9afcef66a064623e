/* Pieces of text that outputs share. */
#ifndef TALLY_OUTPUT_TEXT_H
#define TALLY_OUTPUT_TEXT_H

#include "base/buffer.h"
#include "base/characters.h"
#include "base/json.h"
#include "task/task.h"

#include <stdbool.h>
#include <stddef.h>

/* Fits text into columns. */

/* Returns a text's columns on a terminal: the number of UTF-8 characters. */
int tally_text_width(const char *text);

/* Appends `text` in at most `width` columns; 0: no limit. A function name that is too long first
 * loses its template arguments, then its namespaces ("vector<…>::push_back"; brief_name.c), then
 * its middle; other text loses its end. "…" (".." with `ascii`) marks the cut. Returns the columns
 * used. */
int tally_fit_text(struct tally_buffer *out, const char *text, int width, bool ascii);

/* Appends `text`, wrapped at blanks to lines of at most `columns`; no newline after the last. */
void tally_wrap_text(struct tally_buffer *out, const char *text, int columns);

/* Finds where a function's name ends and its parameters begin. */

/* Returns the length up to the parameter list: the first '(' that
 *
 * - is not within template arguments ("<lambda(int)>") or a lambda's name ("{lambda(int)#1}"),
 * - is not followed by "::" or "." ("f(int)::g", "(anonymous namespace)::f", D's "main().g"),
 * - does not follow a blank ("block (2 levels) in run"), and
 * - belongs neither to an operator's name nor to a Go receiver ("(*T).").
 *
 * An object's name in brackets has no parameters.
 */
size_t tally_function_name_length(const char *name);

/* Shortens function names; the end of a name is its most useful part. */

/* Appends the name, shortened if it is wider than `width` columns. First `dots` replace template
 * arguments, then leading namespaces are dropped: "Sorter<…>::bubble". If room is left, it keeps
 * some of the first arguments, because they tell instances of a template apart. The result may
 * still be wider than `width`. */
void tally_brief_name(struct tally_buffer *out, const char *name, int width, const char *dots);

/* Names and numbers as a flame graph shows them. Names are untrusted: the output is valid UTF-8
 * without control bytes, and can't end the text, attribute, script or string that contains it. For
 * flamegraph_*.c. */

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

/* A pager for long output on a terminal: $TALLY_PAGER, $PAGER, or less(1). */

/* If `wanted` and standard output is a terminal, tally_pager_start() sends standard output through
 * a pager until tally_pager_finish(). */
struct tally_pager {
	int pid; /* the pager's; 0: none */
	bool colours;
	unsigned columns; /* terminal width; 0: standard output is not a terminal */
};

void tally_pager_start(struct tally_pager *pager, bool wanted);
/* The same in two steps, for text that is made before: measures the terminal, then starts the pager
 * so that a line is shown, counted from 0, of `lines`.  Only less(1) can do that; others begin at
 * the top, as less does if the line is on the first screen. */
void tally_pager_measure(struct tally_pager *pager);
void tally_pager_start_at(struct tally_pager *pager, bool wanted, size_t line,
			  size_t lines);
/* True if the pager is less(1) and stays until the user quits, because $LESS is set and lacks F. */
bool tally_pager_is_less(void);
/* Flushes standard output and waits until the user quits the pager. */
void tally_pager_finish(struct tally_pager *pager);

/* The Trace Event Format of ui.perfetto.dev and chrome://tracing: shared by timeline_trace.c and
 * export_chrome.c.
 *
 * Never writes displayTimeUnit. In Chrome's viewer it sets how times are displayed, but some
 * versions of Perfetto take it as the unit of "ts", and "ns" then shrinks everything to a
 * thousandth.
 */

/* Starts an event's object and leaves it open for more members; tally_json_end() ends it. */
void tally_trace_event_start(struct tally_json *json, const char *name, const char *phase,
			     uint32_t pid, uint32_t tid, uint64_t time_ns);
/* Names a process or a thread; `what` is "process_name" or "thread_name". */
void tally_trace_event_name(struct tally_json *json, const char *what, uint32_t pid, uint32_t tid,
			    const char *name);
/* Names all processes and threads, without those of tid 0 unless `idle`. */
void tally_trace_event_tasks(struct tally_json *json, const struct tally_tasks *tasks, bool idle);

#endif

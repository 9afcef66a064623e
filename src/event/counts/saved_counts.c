/* Reads documents into rows, and joins the runs of one file.  Then compares two files row by row,
 * notes what makes them hard to compare, and judges conditions. */
#include "counts/counts.h"

#include "base/json.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 4096, DOCUMENTS_MAX = 100000, VALUES_MAX = 10000, OUTLIERS_SHOWN = 3 };

struct reading {
	struct tally_arena *arena;
	struct tally_saved_counts *counts;
	const struct tally_json_document *document;
	bool failed; /* out of memory */
};

/* --- rows ----------------------------------------------------------------- */

static const char *keep(struct reading *reading, const char *text)
{
	const char *copy = tally_arena_string(reading->arena, tally_text_or(text, ""));
	reading->failed |= !copy;
	return tally_text_or(copy, "");
}

static struct tally_saved_row *row_of(struct tally_saved_counts *counts, const char *name)
{
	for (size_t i = 0; i < counts->rows.count; i++)
		if (!strcmp(counts->rows.items[i].name, name))
			return &counts->rows.items[i];
	return NULL;
}

/* Joins another run's figure to the row.  A row that lacks a figure in any run has none. */
static void add_row(struct reading *reading, const struct tally_saved_row *more)
{
	struct tally_saved_counts *counts = reading->counts;
	struct tally_saved_row *row = row_of(counts, more->name);
	if (!row) {
		struct tally_saved_row copy = *more;
		copy.name = keep(reading, more->name);
		copy.unit = keep(reading, more->unit);
		copy.source = keep(reading, more->source);
		if (more->missing)
			copy.missing = keep(reading, more->missing);
		else if (more->figure.runs == 1 &&
			 tally_vector_push(&copy.values, more->figure.mean) < 0)
			reading->failed = true;
		if (counts->rows.count >= ROWS_MAX || tally_vector_push(&counts->rows, copy) < 0) {
			tally_vector_release(&copy.values);
			reading->failed = true;
		}
		return;
	}
	bool goes_on = !row->missing && !more->missing && more->figure.runs == 1 &&
		       row->values.count == row->figure.runs && row->values.count < VALUES_MAX;
	if (!goes_on)
		row->values.count = 0;
	else if (tally_vector_push(&row->values, more->figure.mean) < 0)
		reading->failed = true;
	if (more->missing && !row->missing)
		row->missing = keep(reading, more->missing);
	row->is_scaled |= more->is_scaled;
	row->is_substitute |= more->is_substitute;
	if (!row->missing)
		tally_figure_join(&row->figure, &more->figure);
}

static const char *text_of(const struct reading *reading, const struct tally_json_value *value,
			   const char *name)
{
	return tally_json_string(reading->document,
				 tally_json_member(reading->document, value, name));
}

static bool number_of(const struct reading *reading, const struct tally_json_value *value,
		      const char *name, double *out)
{
	return tally_json_number(reading->document,
				 tally_json_member(reading->document, value, name), out) &&
	       isfinite(*out);
}

static bool truth_of(const struct reading *reading, const struct tally_json_value *value,
		     const char *name)
{
	return tally_json_is_true(tally_json_member(reading->document, value, name));
}

/* --- tally's documents ---------------------------------------------------- */

/* Returns the row's name: "cycles [CPU 3]" for one of several parts or cgroups, which are rows of
 * their own. */
static const char *row_name(const struct reading *reading, const struct tally_json_value *event,
			    const char *name)
{
	static const char *const parts[] = { "cpu",  "core",   "die",   "socket",
					     "node", "thread", "cgroup" };
	for (size_t i = 0; name && i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *part = text_of(reading, event, parts[i]);
		if (part)
			name = tally_arena_printf(reading->arena, "%s [%s %s]", name, parts[i],
						  part);
	}
	return name;
}

static void add_event(struct reading *reading, const struct tally_json_value *event,
		      unsigned long runs)
{
	const char *state = text_of(reading, event, "state"),
		   *quality = text_of(reading, event, "quality");
	struct tally_saved_row row = {
		.name = row_name(reading, event, text_of(reading, event, "name")),
		.unit = text_of(reading, event, "unit"),
		.source = text_of(reading, event, "source"),
		.figure.runs = runs,
		.is_scaled = truth_of(reading, event, "scaled"),
		.is_substitute = truth_of(reading, event, "substitute"),
		.is_user_only = truth_of(reading, event, "user_only"),
	};
	if (!row.name)
		return;
	if (!number_of(reading, event, "value", &row.figure.mean))
		row.missing = tally_text_or(state, "no value");
	if (runs > 1 && !number_of(reading, event, "sigma", &row.figure.sigma))
		row.figure.runs = 1;
	/* The simulated PMU's counts are the same for the same program and input, unless several
	 * runs show otherwise. */
	row.figure.repeats = quality && row.figure.sigma == 0 && !row.is_scaled;
	add_row(reading, &row);
}

static void add_seconds(struct reading *reading, const struct tally_json_value *root,
			const char *member, const char *sigma, const char *name, unsigned long runs)
{
	struct tally_saved_row row = { .name = name, .unit = "s", .figure.runs = runs };
	double deviation;
	if (!number_of(reading, root, member, &row.figure.mean))
		return;
	if (runs > 1 && number_of(reading, root, sigma, &deviation))
		row.figure.sigma = deviation / 1e9;
	else if (runs > 1)
		row.figure.has_no_spread = true;
	row.figure.mean /= 1e9;
	add_row(reading, &row);
}

static const char *join_command(struct reading *reading, const struct tally_json_value *root)
{
	const struct tally_json_value *words = tally_json_member(reading->document, root,
								 "command");
	const char *line = "";
	size_t count = tally_json_count(reading->document, words);
	for (size_t i = 0; i < count && i < 64 && !reading->failed; i++) {
		const char *word = tally_json_string(reading->document,
						     tally_json_item(reading->document, words, i));
		if (i)
			line = tally_arena_printf(reading->arena, "%s %s", line,
						  tally_text_or(word, "?"));
		else
			line = keep(reading, word);
		reading->failed |= !line;
	}
	if (reading->failed)
		return "";
	return line;
}

static void add_notes(struct reading *reading, const struct tally_json_value *root)
{
	const struct tally_json_value *notes = tally_json_member(reading->document, root, "notes");
	size_t count = tally_json_count(reading->document, notes);
	for (size_t i = 0; i < count && i < 16 && reading->counts->notes.count < 64; i++) {
		const char *note = tally_json_string(reading->document,
						     tally_json_item(reading->document, notes, i));
		reading->failed |= note && tally_vector_push(&reading->counts->notes,
							     keep(reading, note)) < 0;
	}
}

/* Notes how the command ended: counts of a killed command cover only a part of its work. */
static void add_end(struct reading *reading, const struct tally_json_value *root)
{
	double status = 0;
	const char *ended = NULL;
	if (number_of(reading, root, "exit_status", &status) && status > 128 && status < 256)
		ended = tally_arena_printf(reading->arena, "signal %d", (int)status - 128);
	else if (truth_of(reading, root, "interrupted"))
		ended = "an interruption";
	if (ended)
		reading->counts->ended = ended;
}

static int add_tally(struct reading *reading, const struct tally_json_value *root,
		     struct tally_error *err)
{
	const struct tally_json_value *events = tally_json_member(reading->document, root,
								  "events");
	struct tally_saved_counts *counts = reading->counts;
	double version = 0, runs = 1, end;
	number_of(reading, root, "version", &version);
	if (version != 1)
		return tally_error_set(err, -EINVAL,
				       "its version is %g; only version 1 can be read", version);
	if (number_of(reading, root, "interval_end_ns", &end)) {
		tally_error_set(err, -EINVAL, "it holds intervals (stat -I), not runs");
		tally_error_hint(err, "save whole runs: tally stat -r 5 -j -o FILE -- command");
		return -EINVAL;
	}
	number_of(reading, root, "runs", &runs);
	unsigned long number = 1;
	if (runs >= 1 && runs < 1e9)
		number = (unsigned long)runs;
	counts->command = join_command(reading, root);
	counts->machine = keep(reading, text_of(reading, root, "machine"));
	add_notes(reading, root);
	add_end(reading, root);
	counts->provider = keep(reading, text_of(reading, root, "provider"));
	counts->runs += number;
	for (size_t i = 0; i < tally_json_count(reading->document, events); i++)
		add_event(reading, tally_json_item(reading->document, events, i), number);
	add_seconds(reading, root, "elapsed_ns", "elapsed_sigma_ns", "elapsed", number);
	add_seconds(reading, root, "user_ns", "user_sigma_ns", "user", number);
	add_seconds(reading, root, "system_ns", "system_sigma_ns", "system", number);
	return 0;
}

/* --- perf's lines: an object for each event, the value in a string, "variance" the error of the
 * mean in percent ---- */

static int add_perf(struct reading *reading, const struct tally_json_value *root,
		    struct tally_error *err)
{
	const char *value = text_of(reading, root, "counter-value");
	struct tally_saved_row row = { .name = row_name(reading, root,
							text_of(reading, root, "event")),
				       .unit = text_of(reading, root, "unit"),
				       .source = "perf",
				       .figure.runs = 1 };
	double percent, running;
	if (!row.name || !value)
		return tally_error_set(err, -EINVAL, "it is neither tally's JSON nor perf's");
	if (number_of(reading, root, "interval", &running))
		return tally_error_set(err, -EINVAL, "it holds intervals (stat -I), not runs");
	char *end;
	row.figure.mean = strtod(value, &end);
	if (end == value || *end || !isfinite(row.figure.mean))
		row.missing = value[0] ? value : "no value";
	if (row.unit && !strcmp(row.unit, "msec")) { /* the unit of tally's clocks */
		row.unit = "ns";
		row.figure.mean *= 1e6;
	}
	if (number_of(reading, root, "variance", &percent)) {
		row.figure.sigma = fabs(row.figure.mean * percent / 100);
		row.figure.runs = 0;
	}
	row.is_scaled = number_of(reading, root, "pcnt-running", &running) && running < 100;
	if (row_of(reading->counts, row.name))
		return tally_error_set(
			err, -EINVAL,
			"it holds '%s' twice: one run's lines of `perf stat -j` are read",
			row.name);
	add_row(reading, &row);
	return 0;
}

/* --- files ---------------------------------------------------------------- */

static int add_document(struct reading *reading, struct tally_error *err)
{
	const struct tally_json_value *root = tally_json_root(reading->document);
	const char *schema = text_of(reading, root, "schema");
	int result;
	if (schema && !strcmp(schema, "tally-stat"))
		result = add_tally(reading, root, err);
	else
		result = add_perf(reading, root, err);
	if (result < 0)
		return result;
	if (reading->failed)
		return tally_error_set(err, -ENOMEM, "out of memory, or too many events");
	return 0;
}

/* Skips blanks, and perf's comment lines at the beginning of its file. */
static size_t skip_blanks(const char *text, size_t length, size_t at)
{
	while (at < length && (isspace((unsigned char)text[at]) || text[at] == '#')) {
		if (text[at] == '#')
			at = (size_t)(tally_line_end(text + at, text + length) - text);
		at += at < length;
	}
	return at;
}

static int read_documents(struct reading *reading, const char *text, size_t length,
			  struct tally_error *err)
{
	size_t at = skip_blanks(text, length, 0), documents = 0;
	int result = 0;
	if (at == length)
		return tally_error_set(err, -EINVAL, "it is empty");
	for (; at < length && result >= 0 && documents < DOCUMENTS_MAX; documents++) {
		struct tally_json_document *document;
		size_t used;
		result = tally_json_read(text + at, length - at, &document, &used, err);
		if (result < 0)
			break;
		reading->document = document;
		result = add_document(reading, err);
		tally_json_release(document);
		at = skip_blanks(text, length, at + used);
	}
	return result;
}

int tally_saved_counts_read(const char *path, const char *text, size_t length,
			    struct tally_arena *arena, struct tally_saved_counts *out,
			    struct tally_error *err)
{
	struct tally_error inner = TALLY_ERROR_NONE;
	*out = (struct tally_saved_counts){
		.path = path, .command = "", .provider = "", .machine = "", .ended = ""
	};
	struct reading reading = { .arena = arena, .counts = out };
	int result = read_documents(&reading, text, length, &inner);
	if (result >= 0)
		return 0;
	tally_saved_counts_release(out);
	tally_error_set(err, result, "%s: %s", path, inner.message);
	if (inner.hint[0])
		tally_error_hint(err, "%s", inner.hint);
	else if (result == -EINVAL)
		tally_error_hint(err, "save counts with: tally stat -j -o FILE -- command");
	return result;
}

void tally_saved_counts_release(struct tally_saved_counts *counts)
{
	for (size_t i = 0; i < counts->rows.count; i++)
		tally_vector_release(&counts->rows.items[i].values);
	tally_vector_release(&counts->rows);
	tally_vector_release(&counts->notes);
}

/* --- names ---------------------------------------------------------------- */

/* Returns the event's own name: "instructions" for "vsim/instructions,counters=4/u" and for
 * "instructions:u". */
static const char *bare(const char *name, size_t *length)
{
	static const char modifiers[] = "ukhIGHpPSDWeb";
	const char *slash = strchr(name, '/'), *colon = strrchr(name, ':');
	if (slash && strchr(slash + 1, '/')) {
		*length = strcspn(slash + 1, ",/");
		return slash + 1;
	}
	/* otherwise it is a tracepoint's name */
	bool is_modified = colon && colon[1] && !colon[1 + strspn(colon + 1, modifiers)];
	*length = is_modified ? (size_t)(colon - name) : strlen(name);
	return name;
}

static bool is_same_event(const char *a, const char *b)
{
	size_t a_length, b_length;
	a = bare(a, &a_length);
	b = bare(b, &b_length);
	return a_length == b_length && !memcmp(a, b, a_length);
}

const struct tally_saved_row *tally_saved_counts_find(const struct tally_saved_counts *counts,
						      const char *name)
{
	const struct tally_saved_row *only = NULL;
	for (size_t i = 0; i < counts->rows.count; i++)
		if (!strcmp(counts->rows.items[i].name, name))
			return &counts->rows.items[i];
	for (size_t i = 0; i < counts->rows.count; i++) {
		const struct tally_saved_row *row = &counts->rows.items[i];
		if (!is_same_event(row->name, name))
			continue;
		if (only)
			return NULL;
		only = row;
	}
	return only;
}

static void add_note(struct tally_saved_comparison *out, const char *note, int *result)
{
	if (!note || tally_vector_push(&out->notes, note) < 0)
		*result = -ENOMEM;
}

static bool has_note(const struct tally_saved_counts *side, const char *note)
{
	for (size_t i = 0; i < side->notes.count; i++)
		if (!strcmp(side->notes.items[i], note))
			return true;
	return false;
}

/* Notes remarks that only one side has: only a region counted, something not simulated. */
static void note_remarks(struct tally_saved_comparison *out, const struct tally_saved_counts *side,
			 const struct tally_saved_counts *other, struct tally_arena *arena,
			 int *result)
{
	for (size_t i = 0; i < side->notes.count; i++)
		if (!has_note(other, side->notes.items[i]))
			add_note(out,
				 tally_arena_printf(arena, "%s: %s", side->path,
						    side->notes.items[i]),
				 result);
	if (side->ended[0])
		add_note(out,
			 tally_arena_printf(arena, "%s: the command was ended by %s", side->path,
					    side->ended),
			 result);
}

/* Names the runs whose time is far from the others'. */
static void note_outliers(struct tally_saved_comparison *out, const struct tally_saved_counts *side,
			  const char *word, struct tally_arena *arena, int *result)
{
	const struct tally_saved_row *row = tally_saved_counts_find(side, "elapsed");
	if (!row || !row->values.count)
		return;
	size_t count = row->values.count, shown = 0;
	bool *is_outlier = calloc(count, sizeof(*is_outlier));
	double median = 0;
	int outliers = -ENOMEM;
	if (is_outlier)
		outliers = tally_outliers_mark(row->values.items, count, is_outlier, &median);
	for (size_t i = 0; i < count && outliers > 0 && shown < OUTLIERS_SHOWN; i++) {
		if (!is_outlier[i])
			continue;
		shown++;
		add_note(out,
			 tally_arena_printf(arena,
					    "%s: run %zu is an outlier: it took %.4g s, the median "
					    "is %.4g s",
					    word, i + 1, row->values.items[i], median),
			 result);
	}
	if (outliers > OUTLIERS_SHOWN)
		add_note(out,
			 tally_arena_printf(arena, "%s: %d more runs are outliers", word,
					    outliers - OUTLIERS_SHOWN),
			 result);
	free(is_outlier);
	if (outliers < 0)
		*result = outliers;
}

static int note_differences(struct tally_saved_comparison *out, struct tally_arena *arena)
{
	const struct tally_saved_counts *old = out->old, *new = out->new;
	int result = 0;
	if (strcmp(old->machine, new->machine))
		add_note(out, "the simulated CPUs differ: misses are not comparable (--sim-cpu)",
			 &result);
	note_remarks(out, old, new, arena, &result);
	note_remarks(out, new, old, arena, &result);
	note_outliers(out, old, "old", arena, &result);
	note_outliers(out, new, "new", arena, &result);
	if (!old->is_measured && !new->is_measured && old->command[0] && new->command[0] &&
	    strcmp(old->command, new->command))
		add_note(out,
			 tally_arena_printf(arena, "the commands differ: %s; %s", old->command,
					    new->command),
			 &result);
	if (old->provider[0] && new->provider[0] && strcmp(old->provider, new->provider))
		add_note(out,
			 tally_arena_printf(arena,
					    "the counts are of different providers: %s and %s",
					    old->provider, new->provider),
			 &result);
	for (size_t i = 0; i < out->rows.count && !result; i++) {
		const struct tally_compared_row *row = &out->rows.items[i];
		if (!row->has_change)
			continue;
		if (row->old->is_user_only != row->new->is_user_only)
			add_note(out,
				 tally_arena_printf(arena,
						    "%s: one side counted user code only, "
						    "the other the kernel too",
						    row->name),
				 &result);
		if (row->old->is_scaled || row->new->is_scaled)
			add_note(out,
				 tally_arena_printf(
					 arena,
					 "%s was not counted all of the time: it is an estimate",
					 row->name),
				 &result);
		if (row->old->is_substitute != row->new->is_substitute)
			add_note(out,
				 tally_arena_printf(arena,
						    "%s: one side is resource usage, not the event",
						    row->name),
				 &result);
	}
	return result;
}

static int adjust_changes(struct tally_saved_comparison *out, struct tally_arena *arena)
{
	size_t count = 0;
	struct tally_change **changes = tally_arena_array(arena, out->rows.count + 1,
							  sizeof(*changes));
	if (!changes)
		return -ENOMEM;
	for (size_t i = 0; i < out->rows.count; i++)
		if (out->rows.items[i].has_change)
			changes[count++] = &out->rows.items[i].change;
	tally_changes_adjust(changes, count);
	return 0;
}

int tally_saved_compare(const struct tally_saved_counts *old, const struct tally_saved_counts *new,
			struct tally_arena *arena, struct tally_saved_comparison *out)
{
	*out = (struct tally_saved_comparison){ .old = old, .new = new };
	for (size_t i = 0; i < new->rows.count; i++) {
		const struct tally_saved_row *row = &new->rows.items[i];
		struct tally_compared_row both = { .name = row->name,
						   .new = row,
						   .old = tally_saved_counts_find(old, row->name) };
		both.has_change = both.old && !both.old->missing && !row->missing;
		if (both.has_change)
			tally_change_of(&both.old->figure, &row->figure, &both.change);
		if (tally_vector_push(&out->rows, both) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < old->rows.count; i++) {
		const struct tally_saved_row *row = &old->rows.items[i];
		const struct tally_compared_row alone = { .name = row->name, .old = row };
		if (!tally_saved_counts_find(new, row->name) &&
		    tally_vector_push(&out->rows, alone) < 0)
			return -ENOMEM;
	}
	int result = adjust_changes(out, arena);
	if (result < 0)
		return result;
	return note_differences(out, arena);
}

static const struct tally_compared_row *find_row(const struct tally_saved_comparison *comparison,
						 const char *name)
{
	const struct tally_saved_row *new = tally_saved_counts_find(comparison->new, name);
	for (size_t i = 0; new &&i < comparison->rows.count; i++)
		if (comparison->rows.items[i].new == new)
			return &comparison->rows.items[i];
	return NULL;
}

static int why_unknown(const struct tally_saved_comparison *comparison,
		       const struct tally_condition *condition,
		       const struct tally_compared_row *row, struct tally_error *err)
{
	const struct tally_saved_counts *old = comparison->old, *new = comparison->new;
	const struct tally_saved_counts *ended = new->ended[0] ? new : old;
	if (ended->ended[0])
		return tally_error_set(err, -ENOENT,
				       "'%s' can't be judged: the command of %s was ended by %s",
				       condition->text, ended->path, ended->ended);
	bool lacks_old = row && (!row->old || row->old->missing);
	const char *path = lacks_old ? old->path : new->path;
	const struct tally_saved_row *side = NULL;
	if (row)
		side = lacks_old ? row->old : row->new;
	if (side)
		return tally_error_set(err, -ENOENT,
				       "'%s' can't be judged: %s has no figure for %s (%s)",
				       condition->text, path, condition->name, side->missing);
	return tally_error_set(err, -ENOENT, "'%s' can't be judged: %s has no figure for %s",
			       condition->text, path, condition->name);
}

int tally_saved_compare_judge(struct tally_saved_comparison *comparison,
			      const struct tally_condition *condition, bool past_noise,
			      struct tally_error *err)
{
	const struct tally_compared_row *row = find_row(comparison, condition->name);
	struct tally_judged_condition judged = {
		.condition = *condition, .row = row, .scale = 1, .result = TALLY_CONDITION_UNKNOWN
	};
	bool is_whole = !comparison->old->ended[0] && !comparison->new->ended[0];
	if (row && row->has_change && is_whole) {
		/* clocks are shown in msec */
		judged.scale = strcmp(row->new->unit, "ns") ? 1 : 1e-6;
		judged.result = tally_condition_judge(condition, &row->new->figure, &row->change,
						      judged.scale);
	}
	if (judged.result == TALLY_CONDITION_NOISE && past_noise)
		judged.result = TALLY_CONDITION_TRUE;
	comparison->has_failed |= judged.result == TALLY_CONDITION_TRUE;
	if (tally_vector_push(&comparison->conditions, judged) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	if (judged.result == TALLY_CONDITION_UNKNOWN)
		return why_unknown(comparison, condition, row, err);
	return 0;
}

void tally_saved_comparison_release(struct tally_saved_comparison *comparison)
{
	tally_vector_release(&comparison->rows);
	tally_vector_release(&comparison->conditions);
	tally_vector_release(&comparison->notes);
}

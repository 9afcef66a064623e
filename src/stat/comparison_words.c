#include "base/terminal.h"
#include "stat/comparison_view.h"
#include "stat/stat_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void tally_comparison_figure(const struct tally_saved_row *row, char out[TALLY_COMPARISON_TEXT])
{
	char number[64], unit[24] = "", clean[TALLY_COMPARISON_TEXT - 32];
	if (!row) {
		snprintf(out, TALLY_COMPARISON_TEXT, "—");
		return;
	}
	if (row->missing) {
		tally_terminal_clean(row->missing, clean, sizeof(clean));
		snprintf(out, TALLY_COMPARISON_TEXT, clean[0] == '<' ? "%s" : "<%s>", clean);
		return;
	}
	bool is_clock = !strcmp(row->unit, "ns");
	double value = is_clock ? row->figure.mean / 1e6 : row->figure.mean, size = fabs(value);
	bool is_whole = !row->unit[0] && (size >= 100 || size == (double)(long)size);
	tally_terminal_clean(is_clock ? "msec" : row->unit, unit, sizeof(unit));
	tally_stat_number(value,
			  is_whole                 ? 0
			  : strcmp(row->unit, "s") ? 2
						   : 4,
			  number, sizeof(number));
	snprintf(out, TALLY_COMPARISON_TEXT, "%s%s%s", number, unit[0] ? " " : "", unit);
}

/* Chooses decimals so that about three digits are significant: 12.3 %, 1.25 %, 0.0004 %. */
static int decimals_of(double percent)
{
	double size = fabs(percent);
	return size >= 10 ? 1 : size >= 0.1 || size == 0 ? 2 : size >= 0.001 ? 4 : 6;
}

void tally_comparison_change(const struct tally_compared_row *row, char out[TALLY_COMPARISON_TEXT])
{
	double percent = 100 * row->change.relative;
	out[0] = 0;
	if (!row->has_change)
		return;
	if (isinf(percent))
		snprintf(out, TALLY_COMPARISON_TEXT, "from none");
	else if (percent == 0)
		snprintf(out, TALLY_COMPARISON_TEXT, "0 %%");
	else
		snprintf(out, TALLY_COMPARISON_TEXT, "%+.*f %%", decimals_of(percent), percent);
}

void tally_comparison_remark(const struct tally_compared_row *row, char out[TALLY_COMPARISON_TEXT])
{
	const struct tally_change *change = &row->change;
	size_t used = 0;
	out[0] = 0;
	if (!row->has_change)
		return;
	if (change->has_interval) {
		bool is_large = change->low <= -0.1 || change->high >= 0.1;
		int decimals = is_large ? 1 : decimals_of(100 * (change->high - change->low));
		used = (size_t)snprintf(out, TALLY_COMPARISON_TEXT, "%+.*f … %+.*f %%", decimals,
					100 * change->low, decimals, 100 * change->high);
	}
	bool is_mean = row->old->figure.has_no_spread || row->new->figure.has_no_spread;
	const char *words = change->significance == TALLY_CHANGE_UNKNOWN && is_mean
				    ? "spread unknown"
			    : change->significance == TALLY_CHANGE_UNKNOWN
				    ? "one run: it may be chance"
			    : change->significance == TALLY_CHANGE_NOISE && change->difference != 0
				    ? "within the noise"
			    : row->old->figure.repeats && row->new->figure.repeats ? "repeatable"
										   : "";
	if (words[0] && used < TALLY_COMPARISON_TEXT)
		snprintf(out + used, TALLY_COMPARISON_TEXT - used, "%s%s", used ? ", " : "", words);
}

void tally_comparison_verdict(const struct tally_judged_condition *judged,
			      char out[3 * TALLY_COMPARISON_TEXT])
{
	char figure[TALLY_COMPARISON_TEXT], condition[TALLY_COMPARISON_TEXT];
	if (judged->result == TALLY_CONDITION_UNKNOWN)
		snprintf(figure, sizeof(figure), "can't be judged");
	else if (judged->condition.kind == TALLY_LIMIT_RELATIVE)
		tally_comparison_change(judged->row, figure);
	else if (judged->condition.kind == TALLY_LIMIT_VALUE)
		tally_comparison_figure(judged->row->new, figure);
	else
		snprintf(figure, sizeof(figure), "%+.6g",
			 judged->scale * judged->row->change.difference);
	tally_terminal_clean(judged->condition.text, condition, sizeof(condition));
	snprintf(out, 3 * TALLY_COMPARISON_TEXT, "%s: %s%s", condition, figure,
		 judged->result == TALLY_CONDITION_NOISE ? ", which is within the noise" : "");
}

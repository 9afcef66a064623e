/* How far a scaled count may be from the truth.
 *
 * A multiplexed event is on a counter for a part of the time, and its count is scaled to the whole:
 * total = value / running × enabled.  That is a ratio estimate from a sample of the time.  Its
 * error is estimated from slices of time, each with a value v and a running time r (W. G. Cochran,
 * Sampling Techniques, 1977, chapters 6 and 8).  With R = value / running, a slice's residual is
 * d = v − R r.  The events take turns in a fixed rhythm, so the sample is systematic: the variance
 * comes from the differences of neighbouring residuals, in which slow changes of the program cancel
 * out.  The part that was counted has no error, so the variance is multiplied by 1 − running / enabled.
 *
 * A program whose own rhythm is that of the turns deceives every such estimate: all slices agree, and
 * the total is wrong (docs/accuracy.md). */
#include "counts/counts.h"

void tally_slices_add(struct tally_slices *slices, struct tally_reading slice)
{
	double value = (double)slice.value, running = (double)slice.running_ns;
	if (!slice.enabled_ns)
		return; /* the tasks did not run */
	if (slices->count) {
		double v = value - slices->last_value, r = running - slices->last_running;
		slices->vv += v * v;
		slices->vr += v * r;
		slices->rr += r * r;
	}
	slices->count++;
	slices->value += value;
	slices->running += running;
	slices->enabled += (double)slice.enabled_ns;
	slices->last_value = value;
	slices->last_running = running;
}

void tally_slices_join(struct tally_slices *slices, const struct tally_slices *more)
{
	slices->count += more->count;
	slices->value += more->value;
	slices->running += more->running;
	slices->enabled += more->enabled;
	slices->vv += more->vv;
	slices->vr += more->vr;
	slices->rr += more->rr;
	slices->last_value = more->last_value;
	slices->last_running = more->last_running;
}

bool tally_slices_variance(const struct tally_slices *slices, double *variance)
{
	if (slices->running >= slices->enabled) {
		*variance = 0;
		return slices->count > 0;
	}
	if (slices->count < TALLY_SLICES_MIN || slices->running <= 0)
		return false;
	double n = (double)slices->count, rate = slices->value / slices->running;
	double squares = slices->vv - 2 * rate * slices->vr + rate * rate * slices->rr;
	double of_one = (squares > 0 ? squares : 0) / (2 * (n - 1));
	double scale = slices->enabled / slices->running;
	*variance = n * of_one * scale * scale * (1 - 1 / scale);
	return true;
}

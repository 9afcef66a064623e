/* A region of interest: what `tally stat` and `tally record` count alone, under the simulated PMU
 * (--provider simulated) with --region.
 *
 *     tally_roi_begin();
 *     for (…) the_part_that_matters();
 *     tally_roi_end();
 *
 * Each is one instruction that does nothing (a nop that carries a mark) and is not counted itself;
 * a program that isn't simulated runs over it, and on other machines than x86-64 there is not even
 * that.  Nothing is linked.  The compiler moves no access to memory over it, and may move
 * arithmetic.
 *
 * A region is its thread's: other threads are counted in theirs.  Regions nest: the outermost
 * counts.  An end without a beginning is nothing.  C99, C++. */
#ifndef TALLY_ROI_H
#define TALLY_ROI_H

#if defined(__x86_64__) && defined(__GNUC__)
#define TALLY_ROI_MARK(letter) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 'T', 'a', 'l', " letter : : : "memory")
#else
#define TALLY_ROI_MARK(letter) ((void)0)
#endif

static inline void tally_roi_begin(void)
{
	TALLY_ROI_MARK("'B'");
}

static inline void tally_roi_end(void)
{
	TALLY_ROI_MARK("'E'");
}

#endif

/* A region of interest: with --region, `tally stat` and `tally record` count only these parts of a
 * program that runs under the simulated PMU (--provider simulated).
 *
 *     tally_roi_begin();
 *     for (…) the_part_that_matters();
 *     tally_roi_end();
 *
 * Each call is one instruction without effect (a nop that carries a mark), which itself is not
 * counted.  A program that isn't simulated just executes it; on machines other than x86-64 there is
 * no instruction at all.  Nothing has to be linked.  The compiler moves no memory access across a
 * call, but may move arithmetic.
 *
 * A region belongs to its thread: other threads are counted in their own regions.  Regions nest,
 * and the outermost counts.  An end without a beginning is ignored.  C99, C++. */
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

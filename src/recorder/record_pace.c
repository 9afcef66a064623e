/* Decides how long to wait for the next pass.
 *
 * With stack copies, waking is a fifth of the recorder's work: 64 KiB per sample fill a quarter of
 * a ring in 0.8 ms.  So the recorder is woken at half a ring.  If it then waits long for a CPU, the
 * other half is not enough and samples are lost; but the mark is fixed in the event and can't be
 * moved.  So after a loss the recorder looks by itself when a quarter is filled, judging by the
 * last passes: for a second after the first loss, and twice as long after each further one.
 *
 * But not if even that would have been too late.  A virtual machine's CPU sometimes stops for
 * several milliseconds.  A ring that is full after three is lost then, however early the last look
 * was, and looking earlier for ever after would cost a seventh more for nothing:
 *
 *     last look       ¼        ½                  1         1¼ of the time that fills a ring
 *     |---------------+--------+------------------+---------+--------------
 *                     looked   woken              full      full even with a look at a quarter
 */
#include "recorder/recorder_state.h"

enum { SPAN_NS_MIN = 1000000000, PART = 4, NS_PER_MS = 1000000 };

#define SPAN_NS_MAX ((uint64_t)3600 * SPAN_NS_MIN)

/* Notes how long a ring takes to fill, from a pass that found room in it, and how long no pass
 * looked at the rings: a loss is reported by a record in the following pass. */
static void note_pass(struct tally_record_pace *pace, uint64_t elapsed_ns, uint64_t found_bytes,
		      uint64_t ring_bytes)
{
	if (found_bytes && found_bytes <= ring_bytes - ring_bytes / 8)
		pace->fill_ns = (double)elapsed_ns * (double)ring_bytes / (double)found_bytes;
	pace->longest_ns = elapsed_ns > pace->elapsed_ns ? elapsed_ns : pace->elapsed_ns;
	pace->elapsed_ns = elapsed_ns;
}

static bool would_have_helped(const struct tally_record_pace *pace)
{
	return !pace->fill_ns || (double)pace->longest_ns <= pace->fill_ns + pace->fill_ns / PART;
}

int tally_record_pace_ms(struct tally_record_pace *pace, uint64_t now_ns, uint64_t lost,
			 uint64_t found_bytes, uint64_t ring_bytes)
{
	/* 0: first call; the clock counts from the machine's start */
	uint64_t elapsed_ns = pace->last_ns ? now_ns - pace->last_ns : 0;
	note_pass(pace, elapsed_ns, found_bytes, ring_bytes);
	bool has_lost = lost != pace->lost && would_have_helped(pace);
	if (has_lost && now_ns >= pace->until_ns) {
		pace->span_ns = pace->span_ns ? 2 * pace->span_ns : SPAN_NS_MIN;
		pace->span_ns = pace->span_ns < SPAN_NS_MAX ? pace->span_ns : SPAN_NS_MAX;
	}
	if (has_lost)
		pace->until_ns = now_ns + pace->span_ns;
	pace->lost = lost;
	pace->last_ns = now_ns;
	if (now_ns >= pace->until_ns || !found_bytes)
		return -1;
	double filled_ns = (double)elapsed_ns * (double)(ring_bytes / PART) / (double)found_bytes;
	double ms = filled_ns / NS_PER_MS;
	return ms < 1 ? 1 : ms < TALLY_RECORD_PACE_MS_MAX ? (int)ms : -1;
}

/* Pages of mapped files that can't be read: another program has truncated the file, or its disk
 * fails.  The kernel then raises SIGBUS at an access to the page.
 *
 * Files of other users are never mapped (file_copy.h).  But a user's own file may shrink too, while
 * it is mapped: a compiler writes a program anew, a script copies over a recording.
 *
 * tally_lost_pages_survive() handles the signal for the whole process: it puts a page of zeros in
 * place of the lost one and counts it.  Readers check what they read anyway.  A command whose pages
 * were lost must fail: ask tally_lost_pages() after the reading, or at the end.
 */
#ifndef TALLY_BASE_LOST_PAGES_H
#define TALLY_BASE_LOST_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Handles SIGBUS from now on.  Only programs may call it, libraries may not. */
void tally_lost_pages_survive(void);

/* Returns the number of pages lost so far.  Sets *path, unless `path` is NULL, to the file of the
 * first one, or to "a mapped file" if it is unknown; valid as long as the process. */
size_t tally_lost_pages(const char **path);

/* True for the first caller that tells the user of lost pages: nothing is told twice. */
bool tally_lost_pages_report(void);

#endif

/* Finds where a function's name ends and its parameters begin. */
#ifndef TALLY_OUTPUT_FUNCTION_NAME_H
#define TALLY_OUTPUT_FUNCTION_NAME_H

#include <stddef.h>

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

#endif

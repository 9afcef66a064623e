#!/bin/bash
# A document of docs/ in the build tree: its commands, and what they print.
#   document.sh NAME [--rewrite]
# $TALLY is the command, $EXAMPLES the folder of the built examples, $SOURCE the project.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
# Nothing is installed: the examples are taken from where they lie.
mkdir bin home
ln -s "$TALLY" "$EXAMPLES/hotspots" bin
ln -s "$SOURCE/examples" examples
sed "s|/usr/share/doc/tally/examples|$SOURCE/examples|" "$SOURCE/docs/$1.md" >document.md
HOME=$scratch/home XDG_CACHE_HOME=$scratch/home PATH=$scratch/bin:$PATH \
	python3 "$SOURCE/tests/package/document.py" document.md ${2+"$2"} bash
status=$?
# shellcheck disable=SC2015 # a copy that fails is an error, too
[ -z "${2-}" ] || sed "s|$SOURCE/examples|/usr/share/doc/tally/examples|" document.md >"$SOURCE/docs/$1.md" || status=1
exit $status

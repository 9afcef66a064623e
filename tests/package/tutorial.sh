#!/bin/bash
# docs/tutorial.md in the build tree: its commands, and what they print.  $TALLY is the command, $SOURCE the project.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
# Nothing is installed: the examples are copied from where they lie.
mkdir bin home
ln -s "$TALLY" bin/tally
sed "s|/usr/share/doc/tally/examples|$SOURCE/examples|" "$SOURCE/docs/tutorial.md" >tutorial.md
HOME=$scratch/home XDG_CACHE_HOME=$scratch/home PATH=$scratch/bin:$PATH python3 "$SOURCE/tests/package/tutorial.py" tutorial.md bash

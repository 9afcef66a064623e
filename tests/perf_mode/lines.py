"""For the tests of perf mode: runs a command line with perf and with `tally perf`, and compares the texts line by
line.  Figures differ from run to run, so each becomes its width: the columns must be the same, the figures not."""
import difflib
import os
import pathlib
import re
import shlex
import subprocess

TALLY = os.environ["TALLY"]
PERF = os.environ["PERF"]
checks = failures = 0


def check(name, is_right, why="", skipped=""):
    """A line of TAP; of a failure the reason, and its first 4,000 characters."""
    global checks, failures
    checks += 1
    failures += not is_right
    print("ok" if is_right else "not ok", checks, "-", name.replace("#", "\\#") + (f" # SKIP {skipped}" if skipped else ""))
    if not is_right:
        print("# " + str(why)[:4000].replace("\n", "\n# "))


def skip(name, why):
    check(name, True, skipped=why)


def finish():
    """Returns the exit status of the test."""
    print(f"1..{checks}")
    return int(failures > 0)


def rows(path):
    """The rows of a list: (command line, name of a difference or "")."""
    for line in pathlib.Path(path).read_text().splitlines():
        if line and not line.startswith("#"):
            command, _, difference = line.partition("\t")
            yield command, difference


def run(program, arguments, folder, **more):
    """Returns (exit status, standard output, standard error) of perf or of tally in its place."""
    words = [PERF] if program == "perf" else [TALLY, "perf"]
    done = subprocess.run(words + arguments, cwd=folder, text=True, errors="replace", stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=120, check=False, **more)
    return done.returncode, done.stdout, done.stderr


def words_of(command, places):
    """Splits a row as a shell does; words of `places` are replaced."""
    command = command.replace(r"\t", r"\\t")
    return [places.get(word, word) for word in shlex.split(command)]


def shape(text):
    """Figures become their widths, with the blanks before them; rates lose their letter."""
    text = re.sub(r"[KMG]/sec ", "/sec  ", text)
    text = re.sub(r"[KMG]/sec\b", "/sec", text)
    text = re.sub(r"  \( \+- *[\d.]+% \)", "", text)
    if text.startswith("{"):  # JSON has no columns
        return re.sub(r"\d[\d.]*", "N", text)
    return re.sub(r" *\d[\d.,]*", lambda found: "{%d}" % len(found[0]) if found[0][0] == " " else "N", text)


def difference(perf, tally):
    """Returns the lines that differ, as a diff, or ""."""
    return "\n".join(difflib.unified_diff(perf.splitlines(), tally.splitlines(), "perf", "tally", lineterm="", n=0))

#!/usr/bin/env python3
"""Run by the build: `make_header_manual.py HEADER VERSION`, a page of section 3 on standard output.

The page is the header: its essay, then each declaration with what stands above it.  So the manual of the library can't
say anything else than what the compiler reads.
"""
import re
import sys


def roff(text):
    text = text.replace('\\', '\\e').replace('-', '\\-').replace("'", '\\(aq').replace('`', '\\(ga')
    text = text.replace('^', '\\(ha').replace('~', '\\(ti')
    return re.sub(r'(?m)^\.', r'\\&.', text)


def comment_text(comment):
    """A comment's lines without its stars."""
    lines = comment.strip().removeprefix('/*').removesuffix('*/').split('\n')
    return [re.sub(r'^ \* ?', '', line) if i else line.strip() for i, line in enumerate(lines)]


def put_prose(lines):
    """Paragraphs; lines that are indented stand as they are."""
    code = False
    for line in lines:
        indented = line.startswith('    ')
        if indented != code and line.strip():
            print('.PP\n.RS 4\n.nf' if indented else '.fi\n.RE\n.PP')
            code = indented
        if not line.strip():
            print('' if code else '.PP')
        else:
            print(roff(line.strip() if not code else line[4:]))
    if code:
        print('.fi\n.RE')


def chunks(body):
    """What stands between blank lines at the outermost level."""
    depth, chunk = 0, []
    for line in body.split('\n'):
        if not line.strip() and depth == 0:
            if chunk:
                yield '\n'.join(chunk)
            chunk = []
            continue
        chunk.append(line)
        plain = re.sub(r'/\*.*?\*/', '', line)
        depth += plain.count('{') - plain.count('}')
    if chunk:
        yield '\n'.join(chunk)


def main():
    path, version = sys.argv[1:]
    name = path.rsplit('/', 1)[1].removesuffix('.h')
    text = open(path, encoding='utf-8').read()
    essay, body = re.match(r'\s*(/\*.*?\*/)(.*)', text, re.S).groups()
    body = re.sub(r'#ifdef __cplusplus.*?#endif', '', body, flags=re.S)
    body = re.sub(r'(?m)^#(ifndef|endif|include).*\n|^#define TALLY_\w+_H\n', '', body)
    lines = comment_text(essay)
    summary = ' '.join(lines).split('. ')[0].split(': ')[-1 if lines[0].startswith('libtally:') else 0].rstrip('.')
    print(f'.\\" Made of include/tally/{name}.h.')
    print(f'.TH "TALLY_{name.upper()}" 3 "" "tally {version}" "The tally manual"')
    print(f'.SH NAME\ntally_{name} \\- {roff(summary)}')
    print(f'.SH SYNOPSIS\n.nf\n#include <tally/{name}.h>\n.fi')
    print('.SH DESCRIPTION')
    put_prose(lines)
    print('.SH DECLARATIONS')
    for chunk in chunks(body):
        match = re.match(r'\s*(/\*.*?\*/)\n(.*)', chunk, re.S)
        comment, code = match.groups() if match else (None, chunk)
        print('.PP\n.nf')
        print('\n'.join('\\fB' + roff(line.replace('\t', '    ')) + '\\fR' for line in code.strip('\n').split('\n')))
        print('.fi')
        if comment:
            print('.RS 4')
            put_prose(comment_text(comment))
            print('.RE')
    print('.SH "SEE ALSO"\n.BR tally (1),\n.BR perf_event_open (2)')


if __name__ == '__main__':
    main()

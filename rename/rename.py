#!/usr/bin/env python3
"""Renames C++ identifiers, files and folders of the tree by the tables beside it.

    rename.py --check     what it would refuse, and entries that no longer apply
    rename.py --apply     moves, rewrites and formats the working tree (which must be clean)
    rename.py --verify REVISION   compares the working tree with REVISION: after the inverse renaming no token differs

Tables (tab-separated; '#' begins a comment):

  identifiers.tsv  old token, new token[, globs[, flags]]
      Globs (space-separated, of paths before any move; '!' excludes) limit an entry to those files. Without globs it
      holds in all C++ files. Entries of one token are tried in order; the first whose globs match a file holds there.
      An entry is refused if its new token already stands in any C++ file; with the flag `local`, if it stands in a
      file of its globs that has the old token. Flag `comment`: also renamed as a plain word of comments.
      `after:A,B`: only directly behind the code A or B, written without spaces; implies `local`. `except:A,B`:
      not there.
  paths.tsv        old path, new path: a folder, a file, or a file's path without .h, .cc
  modules.tsv      old name, new name of a library of motley_add_module, or of a test program NAME_test
  texts.tsv        path after the moves, old text, new text (\\n and \\t escaped): exact replacements in files that
      are not C++, and of words in C++ that no token names

String and character literals, and #include <...>, are never changed; in C++ comments and in code spans of Markdown
only tokens that cannot be taken for English or for a key are renamed: in mixed case, with an underscore, or followed
by '('.
"""
import argparse
import fnmatch
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TOKEN = re.compile(
    r'''(?P<include>^[ \t]*\#[ \t]*include[^\n]*)'''
    r'''|(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)'''
    r'''|(?P<raw>(?:u8|[uUL])?R"(?P<d>[^()\\ \n]{0,16})\(.*?\)(?P=d)")'''
    r'''|(?P<string>"(?:\\.|[^"\\\n])*")'''
    r'''|(?P<number>\.?[0-9](?:[0-9a-zA-Z_.]|'(?=[0-9a-fA-F])|(?<=[eEpP])[+-])*)'''
    r'''|(?P<char>'(?:\\.|[^'\\\n])+')'''
    r'''|(?P<word>[A-Za-z_]\w*)'''
    r'''|(?P<space>\s+)'''
    r'''|(?P<other>.)''', re.S | re.M)
WORD = re.compile(r'[A-Za-z_]\w*')
CPP = ('.h', '.cc', '.cu', '.cuh')


def run(*command, **options):
    return subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def tracked():
    return [name for name in run('git', 'ls-files', '-z').split('\0') if name and not name.startswith('rename/')]


def is_cpp(path):
    return path.endswith(CPP)


def table(name):
    rows = []
    path = HERE / name
    for number, line in enumerate(path.read_text().splitlines(), 1) if path.exists() else ():
        if line.strip() and not line.startswith('#'):
            rows.append((f'{name}:{number}', [cell.strip(' ') for cell in line.split('\t')]))
    return rows


class Entry:
    def __init__(self, where, cells):
        self.where = where
        self.old, self.new = cells[:2]
        globs = cells[2].split() if len(cells) > 2 else []
        self.wanted = [glob for glob in globs if not glob.startswith('!')]
        self.excluded = [glob[1:] for glob in globs if glob.startswith('!')]
        flags = cells[3].split() if len(cells) > 3 else []
        self.local = 'local' in flags
        self.in_comments = 'comment' in flags
        after = [flag[6:] for flag in flags if flag.startswith('after:')]
        self.after = tuple(after[0].split(',')) if after else ()
        self.local = self.local or bool(after)
        excepted = [flag[7:] for flag in flags if flag.startswith('except:')]
        self.excepted = tuple(excepted[0].split(',')) if excepted else ()
        for word in (self.old, self.new):
            if not WORD.fullmatch(word):
                sys.exit(f'{where}: "{word}" is no identifier')

    def fits(self, before):
        """whether the code before the token, without spaces, is that of the entry"""
        return (not self.after or before.endswith(self.after)) and not (
            self.excepted and before.endswith(self.excepted))

    def holds(self, path):
        if any(fnmatch.fnmatchcase(path, glob) for glob in self.excluded):
            return False
        return not self.wanted or any(fnmatch.fnmatchcase(path, glob) for glob in self.wanted)


class Identifiers:
    def __init__(self):
        self.entries = [Entry(where, cells) for where, cells in table('identifiers.tsv')]
        self.by_old = defaultdict(list)
        for entry in self.entries:
            self.by_old[entry.old].append(entry)

    def map_for(self, path):
        """old token -> entries in order, for the file that was at `path` before the moves"""
        found = {}
        for old, entries in self.by_old.items():
            holding = [entry for entry in entries if entry.holds(path)]
            if holding:
                found[old] = holding
        return found


class Paths:
    def __init__(self, files):
        self.rows = []
        for where, (old, new) in ((where, cells[:2]) for where, cells in table('paths.tsv')):
            self.rows.append((where, old.rstrip('/'), new.rstrip('/')))
        self.files = set(files)
        self.folders = {str(parent) for name in files for parent in Path(name).parents} - {'.'}
        self.stems = {re.sub(r'\.(h|cc)$', '', name) for name in files if is_cpp(name)}
        self.new_folders = {}
        exact = {old: new for _, old, new in self.rows}
        renamed = {os.path.basename(old): os.path.basename(new) for old, new in exact.items() if old in self.stems}
        self.moved = {}
        for name in files:
            new = self.locate(name, exact)
            test = re.fullmatch(r'(tests/(?!e2e/).*/)(\w+)_test\.cc', name)
            if test and test.group(2) in renamed and name[:-3] not in exact:
                new = f'{os.path.dirname(new)}/{renamed[test.group(2)]}_test.cc'
            self.moved[name] = new
        self.exact = exact
        names = defaultdict(set)
        for name in files:
            names[os.path.basename(name)].add(os.path.basename(self.moved[name]))
        self.bare = {old: next(iter(new)) for old, new in names.items() if len(new) == 1 and old not in new}

    def locate(self, name, exact):
        if name in exact:
            return exact[name]
        stem, extension = os.path.splitext(name)
        if extension in ('.h', '.cc') and stem in exact:
            return exact[stem] + extension
        for parent in Path(name).parents:
            if str(parent) in exact:
                return exact[str(parent)] + name[len(str(parent)):]
        return name

    def of(self, text):
        """The new path of a tracked file, file without extension, or folder of the old tree; None if it is none."""
        if text in self.files:
            return self.moved[text]
        bare = text.rstrip('/')
        if bare in self.folders:
            new = self.exact.get(bare) or self.locate(bare + '/x', self.exact)[:-2]
            return new + text[len(bare):]
        if text in self.stems:
            for extension in ('.h', '.cc'):
                if text + extension in self.files:
                    return self.moved[text + extension][:-len(extension)]
        return None

    def stale(self):
        known = self.files | self.folders | self.stems
        return [(where, old) for where, old, _ in self.rows if old not in known]


def is_distinct(token):
    """whether a word of a comment can only be the identifier"""
    return '_' in token or bool(re.search(r'[a-z0-9][A-Z]', token))


def rename_words(text, entries, changed):
    """in prose (a comment, a code span)"""
    def one(match):
        token = match.group(0)
        entry = next((one for one in entries.get(token, ()) if not one.after), None)
        if entry is None:
            return token
        start, end = match.span()
        quoted = text[end:end + 1] == '(' or (text[max(0, start - 1):start] == '`' and text[end:end + 1] == '`') \
            or text[end:end + 2] == '::' or text[max(0, start - 2):start] == '::'
        path = text[max(0, start - 1):start] in ('/', '"') or text[end:end + 1] in ('/', '"') \
            or re.match(r'\.(h|cc|md|py|json|jsonl|toml)\b', text[end:])
        if path or not (is_distinct(token) or quoted or entry.in_comments):
            return token
        changed.add(entry)
        return entry.new
    return WORD.sub(one, text)


PATH = re.compile(r'[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*/?')


def rename_paths(text, paths, base='', single=False):
    """paths of tracked files and folders in any text; `single`: folders without a slash too"""
    def one(match):
        word = match.group(0)
        tail = ''
        while word and word[-1] in '.-':
            word, tail = word[:-1], word[-1] + tail
        if '/' not in word and not single:
            before = text[max(0, match.start() - 1):match.start()]
            return (paths.bare.get(word, word) if before not in ('/', '*') else word) + tail
        before = text[max(0, match.start() - 1):match.start()]
        if before in ('/', '<', '~') and not base:
            return word + tail
        new = paths.of(word)
        return (new if new is not None else word) + tail
    return PATH.sub(one, text)


def rename_cmake(text, path, paths):
    folder = os.path.dirname(path)
    new_folder = os.path.dirname(paths.moved[path])
    problems = []

    def one(match):
        word = match.group(0)
        for base, new_base in ((folder, new_folder), ('', '')):
            full = os.path.normpath(f'{base}/{word}' if base else word)
            is_folder = full in paths.folders
            if full in paths.files or is_folder or (full in paths.stems and '/' in word):
                if is_folder and '/' not in word and path != 'tests/CMakeLists.txt' \
                        and not re.search(r'add_subdirectory\($', text[:match.start()]):
                    continue
                new = paths.of(full)
                if new_base and not new.startswith(new_base + '/') and '..' not in word:
                    problems.append(f'{path}: {full} moves to {new}, out of the folder of its CMakeLists.txt')
                    return word
                if new == full and new_base == base:
                    return word
                return os.path.relpath(new, new_base) if new_base else new
        return word
    return re.sub(r'(?<![\w./-])[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*', one, text), problems


def rename_modules(text, modules):
    for old, new in modules:
        if old.endswith('_test'):
            text = re.sub(rf'(?<![\w./]){old}(?![\w.])', new, text)
            continue
        text = re.sub(rf'\bmotley::{old}\b(?!::)', f'motley::{new}', text)
        text = re.sub(rf'\bmotley_add_(module|fuzz)\({old}\b', rf'motley_add_\1({new}', text)
        text = re.sub(rf'\bmotley_{old}(?=\b|_headers\b)', f'motley_{new}', text)
    return text


def rename_cpp(text, path, identifiers, paths, changed):
    entries = identifiers.map_for(path)
    in_strings = path in SOURCE_PATH_STRINGS
    before = ''

    def one(match):
        kind = match.lastgroup if match.lastgroup != 'd' else 'raw'
        word = match.group(0)
        nonlocal before
        if kind not in ('comment', 'space', 'include'):
            code, before = before, (before + word)[-40:]
        if kind == 'word':
            entry = next((one for one in entries.get(word, ()) if one.fits(code)), None)
            if entry is None:
                return word
            changed.add(entry)
            return entry.new
        if kind == 'comment':
            return rename_paths(rename_words(word, entries, changed), paths)
        if kind == 'include':
            return re.sub(r'"([^"]+)"', lambda name: f'"{paths.of(name.group(1)) or name.group(1)}"', word, count=1)
        if kind == 'string' and in_strings:
            inner = word[1:-1]
            return f'"{paths.of(inner) or prefix_path(inner, paths)}"'
        return word
    return TOKEN.sub(one, text)


def prefix_path(text, paths):
    """what a prefix such as "comm/tcp/tcp_" becomes"""
    folder, slash, name = text.rpartition('/')
    return (paths.of(folder) or folder) + slash + name if slash else text


# C++ files whose string literals name folders and files of this tree.
SOURCE_PATH_STRINGS = {'tests/base/allowed_edges.cc', 'tests/base/layers_test.cc'}


def keys_of(sources):
    """whole string literals that look like identifiers: keys, names of metrics and events"""
    found = set()
    for text in sources.values():
        for match in TOKEN.finditer(text):
            if match.lastgroup == 'string' and WORD.fullmatch(match.group(0)[1:-1]):
                found.add(match.group(0)[1:-1])
    return found


def rename_markdown(text, identifiers, paths, keys, path):
    entries = {old: entry for old, entry in identifiers.map_for('*any*').items() if old not in keys}
    for old, found in identifiers.by_old.items():
        if old not in keys and len({entry.new for entry in found}) == 1 and not found[0].after:
            entries[old] = found
    changed = set()

    def span(match):
        inner = match.group(2)
        quoted = rename_words(inner, entries, changed)
        if WORD.fullmatch(inner) and inner in entries and (is_distinct(inner) or inner[:1].isupper()):
            quoted = entries[inner][0].new
        return match.group(1) + quoted + match.group(3)
    text = re.sub(r'(`)([^`\n]+)(`)', span, text)
    return rename_paths(text, paths)


CONTINUES = re.compile(r'(\s*)(?!([-*+]|\d+\.)\s|\||#|```|>)\S')


def wrapped(old, new, width=120):
    """`new` with the overlong lines that differ from `old` broken; what does not fit goes on in the next line"""
    if old.count('\n') != new.count('\n'):
        return new
    before, lines, out, fenced = old.split('\n'), new.split('\n'), [], False
    changed = [a != b for a, b in zip(before, lines)]
    for i in range(len(lines)):
        line = lines[i]
        fenced ^= line.lstrip().startswith('```')
        if fenced or len(line) <= width or not changed[i] or re.match(r'\s*(\||#|```)', line):
            out.append(line)
            continue
        marker = re.match(r'\s*((?:[-*+]|\d+\.)\s+)?', line).group(0)
        cut = line.rfind(' ', len(marker), width + 1)
        if cut < 0:
            out.append(line)
            continue
        out.append(line[:cut])
        rest, indent = line[cut + 1:], ' ' * len(marker)
        follows = CONTINUES.match(lines[i + 1]) if i + 1 < len(lines) else None
        if follows and follows.group(1) == indent:
            lines[i + 1] = indent + rest + ' ' + lines[i + 1][len(indent):]
            changed[i + 1] = True
        else:
            out.append(indent + rest)
    return '\n'.join(out)


def token_counts(sources):
    files = defaultdict(set)
    for name, text in sources.items():
        for match in TOKEN.finditer(text):
            if match.lastgroup == 'word':
                files[match.group(0)].add(name)
    return files


LIBRARY = re.compile(r'\b(?:std|at|c10|torch|boost|asio|beast|nlohmann|fmt|toml|spdlog|gloo|testing|rc|fs|ranges|chrono)'
                     r'(?:::\w+)*::(\w+)')


def check(identifiers, paths, sources):
    """what to refuse, and notes"""
    refused, notes = [], []
    where_used = token_counts(sources)
    of_library = {name for text in sources.values() for name in LIBRARY.findall(text)}
    refused += [f'{entry.where}: {entry.old} is also a name of a library' for entry in identifiers.entries
                if entry.old in of_library and not entry.wanted and not entry.after]
    new_of = {}
    for entry in identifiers.entries:
        holders = [name for name in where_used.get(entry.old, ()) if entry.holds(name)]
        if not holders:
            notes.append(f'{entry.where}: {entry.old} stands nowhere (any more)')
            continue
        taken = where_used.get(entry.new, set())
        if entry.local:
            taken = taken & set(holders)
        if taken:
            refused.append(f'{entry.where}: {entry.old} -> {entry.new}, which already stands in '
                           f'{", ".join(sorted(taken)[:3])} ({len(taken)})')
        if entry.new in identifiers.by_old:
            refused.append(f'{entry.where}: {entry.new} is itself renamed')
        other = new_of.setdefault(entry.new, entry)
        if other.old != entry.old and not (entry.local and other.local):
            refused.append(f'{entry.where}: {entry.new} is also the new name of {other.old} ({other.where})')
    notes += [f'{where}: {old} is no file or folder (any more)' for where, old in paths.stale()]
    targets = defaultdict(list)
    for old, new in paths.moved.items():
        targets[new].append(old)
    refused += [f'{new} would be {len(old)} files: {", ".join(old)}' for new, old in targets.items() if len(old) > 1]
    return refused, notes


def read_sources(files):
    return {name: (ROOT / name).read_text() for name in files if is_cpp(name) and not (ROOT / name).is_symlink()}


def text_rows():
    rows = []
    for where, cells in table('texts.tsv'):
        path, old, new = (cell.encode().decode('unicode_escape').encode('latin-1').decode()
                          if '\\' in cell else cell for cell in cells[:3])
        rows.append((where, path, old, new))
    return rows


def apply(args):
    if not args.dirty and run('git', 'status', '--porcelain', '--untracked-files=no').strip():
        sys.exit('the working tree has changes; commit them first')
    files = tracked()
    identifiers, paths, sources = Identifiers(), Paths(files), read_sources(files)
    modules = [cells[:2] for _, cells in table('modules.tsv')]
    refused, notes = check(identifiers, paths, sources)
    print('\n'.join(notes))
    if refused:
        sys.exit('refused:\n  ' + '\n  '.join(refused))
    keys = keys_of(sources)
    results, problems, changed = {}, [], set()
    for name in files:
        full = ROOT / name
        if full.is_symlink() or not full.is_file():
            continue
        if is_cpp(name):
            text = sources[name]
            new = rename_cpp(text, name, identifiers, paths, changed)
        else:
            try:
                text = full.read_text()
            except UnicodeDecodeError:
                continue
            if name.endswith('CMakeLists.txt') or name.endswith('.cmake'):
                new, found = rename_cmake(text, name, paths)
                new = rename_modules(new, modules)
                problems += found
            elif name.endswith('.md'):
                new = rename_modules(rename_markdown(text, identifiers, paths, keys, name), modules)
                if name.startswith('docs/decisions/') or name == 'CHANGELOG.md':
                    new = rename_modules(rename_paths(text, paths), modules)
                new = wrapped(text, new)
            elif name.endswith(('.py', '.sh', '.json', '.yml', '.yaml')) or name.startswith(('scripts/', '.ci/', '.clang')):
                new = rename_paths(text, paths) if not name.endswith('.json') or '/' not in name else text
            else:
                new = text
        if new != text:
            results[name] = new
    if problems:
        sys.exit('\n'.join(problems))
    unused = [entry for entry in identifiers.entries if entry not in changed]
    for name, text in results.items():
        (ROOT / name).write_text(text)
    for old, new in sorted(paths.moved.items()):
        if old != new:
            (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
            run('git', 'mv', '-k', old, new)
    for folder in sorted(paths.folders, key=len, reverse=True):
        if (ROOT / folder).is_dir() and not any((ROOT / folder).iterdir()):
            (ROOT / folder).rmdir()
    for where, path, old, new in text_rows():
        full = ROOT / path
        text = full.read_text() if full.is_file() else ''
        if old in text:
            full.write_text(text.replace(old, new))
        elif new not in text:
            print(f'{where}: "{old[:60]}" is not in {path}')
    formatted = [paths.moved[name] for name in results if is_cpp(name)]
    formatted += [new for old, new in paths.moved.items() if old != new and is_cpp(new)]
    formatted = sorted(set(formatted))
    if not args.no_format:
        for first in range(0, len(formatted), 50):
            run('clang-format-14', '-i', *formatted[first:first + 50])
    print(f'{len(identifiers.entries)} identifiers ({len(unused)} without effect), '
          f'{sum(old != new for old, new in paths.moved.items())} files moved, {len(results)} files changed, '
          f'{len(formatted)} formatted')


def tokens_of(text, rename, path_of):
    """code tokens with adjacent strings joined; includes as a sorted list; words of comments"""
    code, includes, comments = [], [], []
    for match in TOKEN.finditer(text):
        kind, word = match.lastgroup, match.group(0)
        if kind == 'd':
            kind = 'raw'
        if kind == 'space':
            continue
        if kind == 'comment':
            comments.append(word)
        elif kind == 'include':
            includes.append(re.sub(r'\s+', '', re.sub(r'"([^"]+)"', lambda m: f'"{path_of(m.group(1))}"', word)))
        elif kind == 'string' and code and code[-1][:1] == '"' and code[-1][-1:] == '"':
            code[-1] = code[-1][:-1] + word[1:]
        elif kind == 'word':
            code.append(rename(word))
        else:
            code.append(word)
    return code, sorted(includes), comments


def verify(args):
    """The old files against the new ones with every renamed token put back."""
    names = [name for name in run('git', 'ls-tree', '-r', '--name-only', '-z', args.verify).split('\0')
             if name and not name.startswith('rename/')]
    identifiers, paths = Identifiers(), Paths(names)
    back = {new: old for old, new in paths.moved.items()}
    differing = count = tokens = 0
    for name in names:
        if not is_cpp(name):
            continue
        old = run('git', 'show', f'{args.verify}:{name}')
        new_file = ROOT / paths.moved[name]
        if not new_file.is_file():
            print(f'{name}: {paths.moved[name]} is missing')
            differing += 1
            continue
        if name in SOURCE_PATH_STRINGS:
            continue
        entries = identifiers.map_for(name)
        present = set(WORD.findall(old))
        inverse = {entry.new: token for token, found in entries.items() if token in present for entry in found}
        before = tokens_of(old, lambda word: word, lambda path: path)
        after = tokens_of(new_file.read_text(), lambda word: inverse.get(word, word), lambda path: back.get(path, path))
        count += 1
        tokens += len(before[0])
        if before[:2] != after[:2]:
            differing += 1
            at = next((i for i, pair in enumerate(zip(before[0], after[0])) if pair[0] != pair[1]), None)
            print(f'{name}: ' + (f'token {at}: {before[0][at - 3:at + 3]} became {after[0][at - 3:at + 3]}'
                                 if at is not None else f'{len(before[0])} tokens became {len(after[0])}, or its includes'))
    print(f'{count} C++ files, {tokens} tokens compared: {differing} files differ')
    sys.exit(1 if differing else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--apply', action='store_true')
    parser.add_argument('--dirty', action='store_true', help='apply to a tree with changes')
    parser.add_argument('--no-format', action='store_true')
    parser.add_argument('--verify', metavar='REVISION')
    args = parser.parse_args()
    if args.apply:
        apply(args)
    elif args.verify:
        verify(args)
    else:
        files = tracked()
        refused, notes = check(Identifiers(), Paths(files), read_sources(files))
        print('\n'.join(notes + ['REFUSED ' + line for line in refused]))
        sys.exit(1 if refused else 0)


if __name__ == '__main__':
    main()

"""The report: one Markdown file without host names, user names or directories."""
import re

from .context import FAILED, NOT_RUN, OK

OUTPUT_LINES = 40  # of the output of a failed program, from its end


class Report:
    def __init__(self, private_words):
        # Longest first: a directory before the user name inside it.
        self.private_words = sorted(private_words.items(), key=lambda item: -len(item[0]))
        self.machine = {}  # what: value
        self.outcomes = []

    def add(self, outcome):
        self.outcomes.append(outcome)

    def failed(self):
        return any(outcome.state == FAILED for outcome in self.outcomes)

    def summary(self):
        counts = {state: sum(outcome.state == state for outcome in self.outcomes)
                  for state in (OK, FAILED, NOT_RUN)}
        failed = ", ".join(each.name for each in self.outcomes if each.state == FAILED)
        return ", ".join(f"{count} {state}" + (f" ({failed})" if state == FAILED and failed else "")
                         for state, count in counts.items())

    def public(self, text):
        for private, word in self.private_words:
            if not private.strip("/"):
                continue
            # Whole words only: a user named "a" must not replace every "a".
            text = re.sub(rf"(?<![\w.-]){re.escape(private)}(?![\w-])", word, text)
        return text

    def text(self):
        lines = ["# gpu-check", "", f"{self.summary()}.", "", "| machine | |", "|---|---|"]
        lines += [f"| {what} | {cell(value)} |" for what, value in self.machine.items()]
        lines += ["", "| check | | figures | seconds |", "|---|---|---|---|"]
        for outcome in self.outcomes:
            lines.append(f"| {outcome.name} | {outcome.state} | {cell(outcome.figures)} | "
                         f"{outcome.seconds:.1f} |")
        for outcome in self.outcomes:
            if outcome.output:
                tail = outcome.output.rstrip().splitlines()[-OUTPUT_LINES:]
                lines += ["", f"## {outcome.name}", "", "```", *tail, "```"]
        return self.public("\n".join(lines) + "\n")


def cell(value):
    return str(value).replace("|", "\\|").replace("\n", "<br>")

#!/usr/bin/env python3
"""Renders pictures of the program in a terminal to docs/pictures/*.svg.

Usage: scripts/screenshots.py PROGRAM MODEL

Runs PROGRAM (build/release/vllmcli) with MODEL in tmux, types what the pictures show, and converts the screens to SVG.
Chats are stored in a temporary directory. Needs tmux (3.3 or later) and nothing else outside Python.
"""

import html
import os
import re
import subprocess
import sys
import tempfile
import time
import unicodedata

CELL_WIDTH = 8.4
CELL_HEIGHT = 18
FONT_SIZE = 14
BACKGROUND = "#1d1f21"
FOREGROUND = "#c5c8c6"
# The 16 colors of the pictures. In a terminal they are the user's own.
PALETTE = [
    "#282a2e", "#cc6666", "#b5bd68", "#f0c674", "#81a2be", "#b294bb", "#8abeb7", "#c5c8c6",
    "#707880", "#d54e53", "#b9ca4a", "#e7c547", "#7aa6da", "#c397d8", "#70c0b1", "#eaeaea",
]


def columns_of(character):
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


class Style:
    def __init__(self):
        self.reset()

    def reset(self):
        self.color = self.background = None
        self.bold = self.dim = self.italic = self.underline = self.reverse = False

    def apply(self, parameters):
        codes = [int(code) if code else 0 for code in parameters.replace(":", ";").split(";")]
        i = 0
        while i < len(codes):
            code = codes[i]
            if code == 0:
                self.reset()
            elif code in (1, 2, 3, 4, 7):
                setattr(self, {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}[code], True)
            elif code == 22:
                self.bold = self.dim = False
            elif code in (23, 24, 27):
                setattr(self, {23: "italic", 24: "underline", 27: "reverse"}[code], False)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.color = PALETTE[code - 30 if code < 90 else code - 82]
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.background = PALETTE[code - 40 if code < 100 else code - 92]
            elif code == 39:
                self.color = None
            elif code == 49:
                self.background = None
            elif code in (38, 48) and i + 2 < len(codes) and codes[i + 1] == 5:
                index = codes[i + 2]
                value = PALETTE[index] if index < 16 else "#808080"
                setattr(self, "color" if code == 38 else "background", value)
                i += 2
            i += 1

    def colors(self):
        color, background = self.color or FOREGROUND, self.background
        return (background or BACKGROUND, color) if self.reverse else (color, background)

    def key(self):
        return (*self.colors(), self.bold, self.dim, self.italic, self.underline)


def runs_of(row):
    """Splits a row with SGR sequences into (column, columns, text, key of the style)."""
    style, column, runs = Style(), 0, []
    for part in re.split(r"(\x1b\[[0-9;:]*m|\x1b\][^\x1b\x07]*(?:\x1b\\|\x07))", row):
        if part.startswith("\x1b["):
            style.apply(part[2:-1])
            continue
        if part.startswith("\x1b]"):
            continue
        for character in part:
            width = columns_of(character)
            same = runs and runs[-1][3] == style.key() and width < 2 and len(runs[-1][2]) == runs[-1][1]
            if width == 0 and runs:
                runs[-1][2] += character
            elif same:
                runs[-1][1] += width
                runs[-1][2] += character
            else:
                runs.append([column, width, character, style.key()])
            column += width
    return runs


def to_svg(rows, columns, title):
    width = columns * CELL_WIDTH + 20
    height = len(rows) * CELL_HEIGHT + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" role="img" aria-label="{html.escape(title)}">',
        f'<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>',
        f'<g font-family="ui-monospace,Menlo,Consolas,\'DejaVu Sans Mono\',monospace" font-size="{FONT_SIZE}" xml:space="preserve">',
    ]
    for index, row in enumerate(rows):
        y = 10 + index * CELL_HEIGHT
        for column, num_columns, text, (color, background, bold, dim, italic, underline) in runs_of(row):
            x = 10 + column * CELL_WIDTH
            if background:
                out.append(f'<rect x="{x:.1f}" y="{y}" width="{num_columns * CELL_WIDTH:.1f}" height="{CELL_HEIGHT}" fill="{background}"/>')
            if not text.strip():
                continue
            extra = ' font-weight="bold"' if bold else ""
            extra += ' opacity="0.6"' if dim else ""
            extra += ' font-style="italic"' if italic else ""
            extra += ' text-decoration="underline"' if underline else ""
            out.append(
                f'<text x="{x:.1f}" y="{y + 14}" textLength="{num_columns * CELL_WIDTH:.1f}" fill="{color}"{extra}>{html.escape(text)}</text>'
            )
    out.append("</g></svg>\n")
    return "\n".join(out)


class Terminal:
    """One command in a tmux session with its own server."""

    def __init__(self, command, columns, rows, environment):
        self.columns = columns
        # Each has its own socket, because the server of the one before may still be ending.
        self.socket = f"vllmcli-pictures-{os.getpid()}-{columns}x{rows}"
        arguments = ["new-session", "-d", "-x", str(columns), "-y", str(rows)]
        for name, value in environment.items():
            arguments += ["-e", f"{name}={value}"]
        self.tmux(*arguments, command)
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def tmux(self, *arguments):
        result = subprocess.run(["tmux", "-u", "-L", self.socket, *arguments], check=True, capture_output=True, text=True)
        return result.stdout

    def type(self, text, enter=True):
        self.tmux("send-keys", "-l", text)
        if enter:
            self.tmux("send-keys", "Enter")

    def key(self, name):
        self.tmux("send-keys", name)

    def text(self):
        return self.tmux("capture-pane", "-p").rstrip()

    def wait_for(self, pattern, is_still=True):
        """Waits until the screen matches and, if is_still, stops changing."""
        end = time.monotonic() + 180
        before = None
        while time.monotonic() < end:
            now = self.text()
            if re.search(pattern, now) and (now == before or not is_still):
                return
            before = now
            time.sleep(0.7)
        raise SystemExit(f"the screen never showed {pattern!r}:\n{self.text()}")

    def save(self, path, title):
        rows = self.tmux("capture-pane", "-p", "-e").rstrip("\n").split("\n")
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_svg(rows, self.columns, title))
        print(path)

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], check=False, capture_output=True)


PROMPTS = """Write one sentence about the sea.
Name three colors of the rainbow.
What is a prime number?
Translate "good morning" to French.
Why do leaves fall in autumn?
Describe a cat in five words.
What is the boiling point of water?
Write a short poem about rain.
"""


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    program, model = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    pictures = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "pictures")
    os.makedirs(pictures, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        environment = {
            "XDG_DATA_HOME": directory, "XDG_STATE_HOME": directory, "XDG_CONFIG_HOME": directory,
            "XDG_RUNTIME_DIR": directory, "LC_ALL": "C.UTF-8", "TERM": "tmux-256color",
        }
        prompts = os.path.join(directory, "prompts.txt")
        with open(prompts, "w", encoding="utf-8") as file:
            file.write(PROMPTS * 200)

        chat = Terminal(f"{program} chat -m {model} --seed 4 -t 0.2 -n 130", 88, 30, environment)
        try:
            chat.wait_for(r"\n>>> *$")
            chat.type("Explain the difference between a list and a tuple in Python, with a short example.")
            chat.wait_for(r"context \d+/[\s\S]*\n>>> *$")
            chat.save(os.path.join(pictures, "chat.svg"), "A chat with rendered Markdown")
            for line in ("/answers 2 temperature=0.8", "Which of them can be changed?", "/regen seed=9", "/edit"):
                chat.type(line)
                chat.wait_for(r"\n>>>[^\n]*$")
            chat.key("C-u")
            chat.type("Show me how to sort a list.")
            chat.wait_for(r"context \d+/[\s\S]*\n>>> *$")
            chat.type("/tree")
            chat.wait_for("Enter")
            chat.save(os.path.join(pictures, "tree.svg"), "All branches of a conversation")
        finally:
            chat.close()

        batch = Terminal(
            f"{program} batch {prompts} -m {model} -o {directory}/out.jsonl -n 120 --max-num-seqs 16 --num-kv-blocks 600 --live",
            100, 30, environment)
        try:
            batch.wait_for(r"running 1\d", is_still=False)
            time.sleep(40)  # until the sparklines are full
            batch.save(os.path.join(pictures, "engine.svg"), "The engine of a batch at work")
        finally:
            batch.close()


if __name__ == "__main__":
    main()

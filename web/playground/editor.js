// A text area, and behind it the same text in colours, with what is wrong underlined.
import { styleOf } from "./highlight.js";

export class Editor {
  marks = [];

  constructor(area, colours, tokens) {
    Object.assign(this, { area, colours, tokens });
    area.addEventListener("input", () => this.changed());
    area.addEventListener("scroll", () => this.scroll());
    area.addEventListener("keydown", (event) => this.indent(event));
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.changed();
  }

  changed() {
    this.marks = [];
    this.paint();
  }

  /** Underline places: of each `line`, `column`, `end_line`, `end_column`, and `severity`. */
  mark(found) {
    this.marks = found
      .filter((each) => each.line)
      .map((each) => [
        this.seen(this.offset(each.line, each.column)),
        this.offset(each.end_line, each.end_column),
        each.severity,
      ]);
    this.paint();
  }

  /** A place that an underline is seen at: the end of a line has none, what is before it has. */
  seen(at) {
    return /[^\n]/.test(this.text[at] ?? "\n") ? at : Math.max(at - 1, 0);
  }

  /** Put the caret at a place. */
  go(line, column) {
    const at = this.offset(line, column);
    this.area.focus();
    this.area.setSelectionRange(at, at);
    const height = parseFloat(getComputedStyle(this.area).lineHeight);
    this.area.scrollTop = Math.max(0, (line - 4) * height);
  }

  /** Where a line and column are; columns count code points. */
  offset(line, column) {
    const lines = this.text.split("\n");
    const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    return before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  }

  paint() {
    const pieces = [];
    let at = 0;
    for (const [kind, text] of this.tokens(this.text)) {
      const piece = document.createElement("span");
      const mark = this.marks.find(([from, to]) => from < at + text.length && at < Math.max(to, from + 1));
      piece.className = `${styleOf(kind)}${mark ? ` marked ${mark[2]}` : ""}`;
      piece.textContent = text;
      pieces.push(piece);
      at += text.length;
    }
    this.colours.replaceChildren(...pieces, "\n");
    this.scroll();
  }

  scroll() {
    this.colours.scrollTop = this.area.scrollTop;
    this.colours.scrollLeft = this.area.scrollLeft;
  }

  /** A new line begins where the one before does. */
  indent(event) {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing) return;
    const { selectionStart, selectionEnd, value } = this.area;
    const line = value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart);
    const deeper = /[{(]\s*$/.test(line) ? "    " : "";
    event.preventDefault();
    this.area.setRangeText(`\n${/^ */.exec(line)[0]}${deeper}`, selectionStart, selectionEnd, "end");
    this.area.dispatchEvent(new Event("input"));
  }
}

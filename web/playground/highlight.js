// Tokens by the compiler's own rules, which tools/playground writes to highlight.json.

const STYLES = [
  [/^Keyword\.Type|^Name\.Builtin/, "type"],
  [/^Keyword/, "keyword"],
  [/^Name\.(Function|Decorator)/, "name"],
  [/^Comment|^Literal\.String\.Doc/, "comment"],
  [/^Literal\.Number/, "number"],
  [/^Literal\.String/, "string"],
];

/** Return a token's class for the page. */
export const styleOf = (kind) => STYLES.find(([pattern]) => pattern.test(kind))?.[1] ?? "";

/** Make a function that returns the tokens of a text, `[kind, text]`. */
export function lexer(rules) {
  const states = Object.fromEntries(
    Object.entries(rules).map(([state, list]) => [
      state,
      list.map(([pattern, ...rest]) => [new RegExp(pattern, "dmuy"), ...rest]),
    ]),
  );
  return (text) => {
    const found = [];
    const stack = ["root"];
    for (let at = 0; at < text.length; ) {
      let matched;
      for (const [pattern, kinds, then] of states[stack.at(-1)]) {
        pattern.lastIndex = at;
        if (!(matched = pattern.exec(text))) continue;
        if (kinds.length === 1) found.push([kinds[0], matched[0]]);
        else kinds.forEach((kind, i) => found.push([kind, matched[i + 1]]));
        at += matched[0].length;
        if (then === "#pop") stack.pop();
        else if (then) stack.push(then);
        break;
      }
      if (!matched) found.push(["Text", text[at++]]);
    }
    return found;
  };
}

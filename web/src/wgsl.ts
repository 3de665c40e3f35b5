/** The part of a WGSL file that one of its entry points uses; `kerngen/plan/wgsl.py` in Python. */

const DECLARATION = new RegExp(
  String.raw`^(?:(?://|@compute)[^\n]*\n)*` +
    String.raw`(?:@group[^\n]*\) )?(?:fn|struct|const|override|var<[^>\n]*>) (\w+)[^\n]*\n` +
    String.raw`(?:(?:[ })][^\n]*)?\n)*`,
  "gm",
);

/** Return a file's text with empty lines for the rest: naga compiles all that it is given. */
export function only(text: string, entry: string): string {
  const texts = new Map<string, string>();
  for (const found of text.matchAll(DECLARATION)) texts.set(found[1]!, found[0]);
  if (!`\n${texts.get(entry)}`.includes("\n@compute")) return text;
  const kept = new Set([entry]);
  // A set yields what is added while it is gone through.
  for (const name of kept) {
    let code = (texts.get(name) ?? "").replace(/\/\/[^\n]*/g, "");
    // The members of a struct hide no other declaration.
    if (/^struct /m.test(code)) code = code.replace(/\b\w+:/g, "");
    const words = new Set(code.match(/[.@]?\w+/g));
    for (const other of texts.keys())
      if (words.has(other) && !declares(code, other)) kept.add(other);
  }
  return text.replace(DECLARATION, (all: string, name: string) =>
    kept.has(name) ? all : all.replace(/[^\n]/g, ""),
  );
}

/** Whether a declaration has a local, parameter or member of a name. */
function declares(code: string, name: string): boolean {
  return [` ${name}: `, `(${name}: `, `let ${name} =`, `var ${name} =`].some((each) =>
    code.includes(each),
  );
}

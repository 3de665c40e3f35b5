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

/** The language feature of `dot4I8Packed` and `dot4U8Packed`. */
const PACKED = "packed_4x8_integer_dot_product";

/** Return a text with the dot products of bytes that it calls, where a browser lacks them. */
export function withDots(text: string, features: ReadonlySet<string> | undefined): string {
  if (features?.has(PACKED)) return text;
  const called = ["i", "u"].filter((kind) => text.includes(`dot4${kind.toUpperCase()}8Packed(`));
  return text + called.map(dot).join("");
}

/** Return a function of the name of WGSL's own, which it hides: bytes shifted up, and down. */
function dot(kind: string): string {
  const bytes = (word: string) => `(vec4${kind}(vec4u(${word}) << up) >> vec4u(24u))`;
  return `
fn dot4${kind.toUpperCase()}8Packed(a: u32, b: u32) -> ${kind}32 {
    let up = vec4u(24u, 16u, 8u, 0u);
    return dot(${bytes("a")}, ${bytes("b")});
}
`;
}

/** Whether a declaration has a local, parameter or member of a name. */
function declares(code: string, name: string): boolean {
  return [` ${name}: `, `(${name}: `, `let ${name} =`, `var ${name} =`].some((each) =>
    code.includes(each),
  );
}

/** Dot products of bytes, for browsers whose WGSL has none; few shaders call them. */

/** Return a text with the functions of those that it calls, where a browser lacks them. */
export const withDots = (text: string, features = navigator.gpu.wgslLanguageFeatures): string =>
  ["i", "u"]
    .filter((kind) => text.includes(`dot4${kind.toUpperCase()}8Packed(`))
    .filter(() => !features?.has("packed_4x8_integer_dot_product"))
    .reduce((all, kind) => all + dot(kind), text);

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

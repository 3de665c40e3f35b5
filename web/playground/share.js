// A text in a link: UTF-8, in base64, behind the '#'.

export const encode = (text) =>
  btoa(Array.from(new TextEncoder().encode(text), (each) => String.fromCharCode(each)).join(""));

/** Return the text of a link; undefined if there is none, or it is no text. */
export function decode(hash) {
  try {
    const bytes = Uint8Array.from(atob(decodeURIComponent(hash.slice(1))), (each) => each.charCodeAt(0));
    return hash.length > 1 ? new TextDecoder("utf-8", { fatal: true }).decode(bytes) : undefined;
  } catch {
    return undefined;
  }
}

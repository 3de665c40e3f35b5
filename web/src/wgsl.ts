/** What a browser is to compile of a WGSL file. */

/**
 * Return a file's text with empty lines for its other entry points: naga compiles all that it
 * is given.  What only those use is a tenth of the rest, and stays.
 */
export const only = (text: string, entry: string): string =>
  text.replace(/^@compute[^]*?\n}\n/gm, (each) =>
    each.includes(`fn ${entry}(`) ? each : each.replace(/./g, ""),
  );

/** Return a text with the dot products of bytes that it calls, where a browser lacks them. */
export const withDots = async (text: string): Promise<string> =>
  text.includes("8Packed(") ? (await import("./dots.js")).withDots(text) : text;

/** The runtime with the texts of its errors; in production, `core.js` takes its place. */
import { setTexts } from "./errors.js";
import { TEXTS } from "./messages.js";

setTexts(TEXTS);

export * from "./core.js";

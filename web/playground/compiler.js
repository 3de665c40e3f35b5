// The compiler's worker: asked for what is wrong at once, for all else when nobody types.

const IDLE = 250;
const MOST_RESTARTS = 3;

export class Compiler {
  busy = false;
  restarts = 0;

  /** `on` has functions: ready, found (a text's faults), compiled, failed. */
  constructor(on) {
    this.on = on;
    this.start();
  }

  start() {
    this.worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => this.hear({ fatal: event.message ?? "the worker ended" });
    this.busy = true; // until it is ready
  }

  /** Look at a text; what is still to be done for the one before is dropped. */
  look(text) {
    this.next = { what: "check", text };
    clearTimeout(this.timer);
    this.send();
  }

  send() {
    if (this.busy || !this.next) return;
    this.worker.postMessage(this.next);
    [this.asked, this.next, this.busy] = [this.next, undefined, true];
  }

  hear(data) {
    this.busy = false;
    if (data.fatal) return this.restart(data.fatal);
    if (data.ready) this.on.ready(data);
    const newest = !this.next;
    if (data.what === "check") {
      if (newest) this.on.found(data.result, data.took);
      const wrong = data.result.some((each) => each.severity === "error");
      if (newest && !wrong)
        this.timer = setTimeout(() => {
          this.next ??= { what: "compile", text: data.text };
          this.send();
        }, IDLE);
    } else if (data.what === "compile" && newest) {
      this.restarts = 0;
      this.on.compiled(data.result, data.text);
    }
    this.send();
  }

  // Python in a page ends for good where its stack does: another one takes its place.
  restart(why) {
    this.worker.terminate();
    const again = ++this.restarts <= MOST_RESTARTS;
    this.on.failed(why, again);
    if (again) this.start();
  }
}

// Once loaded, the playground needs no network: all of its files are kept.
// tools/playground fills in the list, and the version, which changes with any file.
const VERSION = "@VERSION@";
const FILES = ["@FILES@"];

addEventListener("install", (event) => {
  const kept = caches.open(VERSION).then((cache) => cache.addAll(FILES));
  event.waitUntil(kept.then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  const drop = async () => {
    const old = (await caches.keys()).filter((key) => key.startsWith("playground") && key !== VERSION);
    await Promise.all(old.map((key) => caches.delete(key)));
    await clients.claim();
  };
  event.waitUntil(drop());
});

addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  const url = new URL(event.request.url);
  if (url.pathname.endsWith("/")) url.pathname += "index.html";
  const own = caches.open(VERSION).then((cache) => cache.match(url, { ignoreSearch: true }));
  event.respondWith(own.then((kept) => kept ?? fetch(event.request)));
});

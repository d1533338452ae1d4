// How many a second: over the last seconds, and second by second over the last minute.
const WINDOW_MS = 5000, SECONDS = 60;

export class Rates {
  #events = []; // [time, link or null, crossings, published, delivered]
  #seconds = new Map();

  begin() { this.#events = []; }

  crossed(link, count, now) {
    this.#events.push([now, link, count, 0, 0]);
    const second = Math.floor(now / 1000);
    this.#seconds.set(second, (this.#seconds.get(second) ?? 0) + count);
  }

  count(published, delivered, now) { if (published || delivered) this.#events.push([now, null, 0, published, delivered]); }

  #recent(now) {
    const first = this.#events.findIndex(([at]) => at > now - WINDOW_MS);
    this.#events = first < 0 ? [] : this.#events.slice(first);
    return this.#events;
  }

  shown(now) {
    const sums = this.#recent(now).reduce((s, e) => [s[0] + e[2], s[1] + e[3], s[2] + e[4]], [0, 0, 0]);
    const [crossings, published, delivered] = sums.map((sum) => { const rate = sum / (WINDOW_MS / 1000); return rate < 100 ? rate.toFixed(1) : Math.round(rate).toLocaleString("en"); });
    return { crossings, published, delivered };
  }

  busiest(now, most) {
    const sums = new Map();
    for (const [, link, count] of this.#recent(now)) if (link) sums.set(link, (sums.get(link) ?? 0) + count);
    return [...sums].sort((a, b) => b[1] - a[1]).slice(0, most).map(([link, sum]) => [link, sum / (WINDOW_MS / 1000)]);
  }

  path(now) {
    const last = Math.floor(now / 1000) - 1;
    for (const second of this.#seconds.keys()) if (second < last - SECONDS) this.#seconds.delete(second);
    const heights = Array.from({ length: SECONDS }, (_, i) => this.#seconds.get(last - SECONDS + 1 + i) ?? 0);
    const most = Math.max(1, ...heights);
    return heights.map((height, i) => `${i ? "L" : "M"}${(i * 120 / (SECONDS - 1)).toFixed(1)} ${(30 - 27 * height / most).toFixed(1)}`).join("");
  }
}

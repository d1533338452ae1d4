// The map: brokers and links on a canvas, lit as messages cross; drawn only while something moves.
import { Rates } from "./rates.js";

const LIT_MS = 1600, PULSE_MS = 750, PULSES_MAX = 400, CARD_SCALE = 0.85, NAME_SCALE = 0.42;
const CARD = [84, 40];
const $ = (id) => document.getElementById(id);
const canvas = $("map"), context = canvas.getContext("2d"), tip = $("tip");
const probe = document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true }));
let colours = {}, brokers = [], links = [], pulses = [], hovered = null, moving = false;
let view = { scale: 1, x: 0, y: 0, isOwn: false };
const rates = new Rates();

function readColours() {
  const named = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
  colours = Object.fromEntries(["card", "ink", "soft", "line", "edge", "accent", "glow", "warn", "bad", "paper"].map((n) => [n, named(n)]));
}

function drawMap(shape) {
  brokers = shape.brokers.map(([id, label, x, y]) => ({ id, label: label === id ? "" : label, x, y, state: "away", lit: 0, profiles: 0, published: 0, delivered: 0, refused: 0, waiting: 0 }));
  links = shape.links.map(([a, b]) => ({ a: brokers[a], b: brokers[b], lit: 0, waiting: [0, 0], format: "", isUp: false }));
  pulses = []; rates.begin();
  $("waiting").hidden = true;
  view.isOwn = false;
  fit(); show();
}

function takeTick(tick) {
  const now = performance.now();
  for (const [at, there, back, waitsThere, waitsBack, format, isUp] of tick.links) {
    const link = links[at];
    Object.assign(link, { waiting: [waitsThere, waitsBack], format, isUp });
    if (there || back) { link.lit = now; rates.crossed(link, there + back, now); }
    for (const [count, from, to] of [[there, link.a, link.b], [back, link.b, link.a]])
      for (let i = 0; i < Math.min(count, 3) && pulses.length < PULSES_MAX; i++) pulses.push({ from, to, at: now + i * 110 });
  }
  for (const [at, state, profiles, published, delivered, refused, waiting] of tick.brokers) {
    const broker = brokers[at];
    if (broker.state === "up") {
      rates.count(published - broker.published, delivered - broker.delivered, now);
      if (published > broker.published || delivered > broker.delivered) broker.lit = now;
    }
    Object.assign(broker, { state, profiles, published, delivered, refused, waiting });
  }
  const crossed = links.filter((link) => link.lit && now - link.lit < LIT_MS).sort((one, other) => other.lit - one.lit).slice(0, 20);
  canvas.dataset.crossed = crossed.map((link) => `${link.a.id}-${link.b.id}`).join(" ");
  show();
}

// --- drawing ---------------------------------------------------------------------------------

function show() { if (!moving) { moving = true; requestAnimationFrame(draw); } }

function bounds() {
  const xs = brokers.map((b) => b.x), ys = brokers.map((b) => b.y);
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
}

function fit() {
  const [left, top, right, bottom] = bounds(), { clientWidth: w, clientHeight: h } = canvas;
  const scale = Math.min((w - 60) / (right - left + CARD[0]), (h - 60) / (bottom - top + CARD[1]), 1.9);
  Object.assign(view, { scale, x: w / 2 - scale * (left + right) / 2, y: h / 2 - scale * (top + bottom) / 2 });
}

const atX = (x) => view.x + view.scale * x, atY = (y) => view.y + view.scale * y;

function draw(now) {
  const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, w, h);
  const isActive = drawLinks(now);
  drawPulses(now);
  if (view.scale >= CARD_SCALE) drawNotes();
  const glows = drawBrokers(now);
  moving = isActive || glows || pulses.length > 0;
  if (moving) requestAnimationFrame(draw);
}

function drawLinks(now) {
  let isActive = false;
  const thin = Math.max(0.45, Math.min(1, view.scale * 1.3)); // where very many links are shown
  context.lineCap = "round";
  for (const link of links) {
    const heat = link.lit ? Math.max(0, 1 - (now - link.lit) / LIT_MS) : 0;
    isActive ||= heat > 0;
    const isKnown = link.a.state === "up" && link.b.state === "up", waits = link.waiting[0] + link.waiting[1];
    context.setLineDash(isKnown && !link.isUp ? [4, 5] : []);
    context.beginPath(); context.moveTo(atX(link.a.x), atY(link.a.y)); context.lineTo(atX(link.b.x), atY(link.b.y));
    context.strokeStyle = isKnown && !link.isUp ? colours.bad : waits > 65536 ? colours.warn : colours.edge;
    context.lineWidth = thin * ((link === hovered ? 3 : 1.6) + Math.min(4, Math.log10(1 + waits / 65536)));
    context.stroke();
    if (heat) {
      context.globalAlpha = heat; context.strokeStyle = colours.accent; context.lineWidth = thin * (1.6 + 1.6 * heat);
      context.stroke(); context.globalAlpha = 1;
    }
  }
  context.setLineDash([]);
  return isActive;
}

function drawNotes() {
  context.font = "11px system-ui, sans-serif"; context.textAlign = "center"; context.textBaseline = "middle";
  for (const link of links) {
    const waits = link.waiting[0] + link.waiting[1];
    const note = [link.format, waits > 4096 ? `${bytes(waits)} waiting` : ""].filter(Boolean).join(", ");
    if (!note) continue;
    const x = (atX(link.a.x) + atX(link.b.x)) / 2, y = (atY(link.a.y) + atY(link.b.y)) / 2;
    const width = context.measureText(note).width + 10;
    context.fillStyle = colours.card; context.fillRect(x - width / 2, y - 9, width, 18);
    context.fillStyle = waits > 65536 ? colours.warn : colours.soft; context.fillText(note, x, y);
  }
}

function drawPulses(now) {
  pulses = pulses.filter((pulse) => now < pulse.at + PULSE_MS);
  context.fillStyle = colours.accent;
  for (const { from, to, at } of pulses) {
    const t = (now - at) / PULSE_MS;
    if (t < 0) continue;
    const eased = t < 0.5 ? 2 * t * t : 1 - (2 - 2 * t) ** 2 / 2;
    context.beginPath();
    context.arc(atX(from.x + (to.x - from.x) * eased), atY(from.y + (to.y - from.y) * eased), Math.max(2.2, 3.6 * Math.min(1, view.scale)), 0, 7);
    context.fill();
  }
}

function drawBrokers(now) {
  let glows = false;
  const isCard = view.scale >= CARD_SCALE, isNamed = view.scale >= NAME_SCALE;
  const grown = Math.min(1.35, view.scale), w = CARD[0] * grown, h = CARD[1] * grown;
  context.textAlign = "center"; context.textBaseline = "middle";
  for (const broker of [...brokers].sort((one, other) => (other.state === "up") - (one.state === "up"))) { // the absent on top
    const x = atX(broker.x), y = atY(broker.y);
    if (x < -80 || y < -50 || x > canvas.clientWidth + 80 || y > canvas.clientHeight + 50) continue;
    const heat = broker.lit ? Math.max(0, 1 - (now - broker.lit) / LIT_MS) : 0, isUp = broker.state === "up";
    glows ||= heat > 0;
    context.beginPath();
    if (isCard) context.roundRect(x - w / 2, y - h / 2, w, h, 9);
    else context.arc(x, y, Math.max(isUp ? 2.5 : 5, (isUp ? 7 : 9) * view.scale) + (broker === hovered ? 3 : 0), 0, 7);
    context.fillStyle = !isUp ? colours.bad : isCard ? colours.card : colours.soft; context.fill();
    if (heat) { context.globalAlpha = heat; context.fillStyle = isCard ? colours.glow : colours.accent; context.fill(); context.globalAlpha = 1; }
    if (isCard) {
      context.strokeStyle = !isUp ? colours.bad : heat || broker === hovered ? colours.accent : colours.soft;
      context.lineWidth = broker === hovered ? 2.2 : 1.2; context.stroke();
      context.fillStyle = isUp ? colours.ink : colours.paper; context.font = `600 ${13 * Math.min(1.15, grown)}px system-ui, sans-serif`;
      context.fillText(broker.id, x, y - (broker.label ? 7 : 0) * grown, w - 10);
      context.fillStyle = isUp ? colours.soft : colours.paper; context.font = `${11 * Math.min(1.15, grown)}px system-ui, sans-serif`;
      if (broker.label) context.fillText(broker.label, x, y + 9 * grown, w - 10);
    } else if (isNamed || !isUp || broker === hovered) {
      context.fillStyle = isUp ? colours.soft : colours.bad; context.font = "10px system-ui, sans-serif"; context.fillText(broker.id, x, y + 15);
    }
  }
  return glows;
}

// --- looking closer --------------------------------------------------------------------------

function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const scale = Math.min(4, Math.max(0.02, view.scale * factor)), grown = scale / view.scale;
  view = { scale, x: x - grown * (x - view.x), y: y - grown * (y - view.y), isOwn: true };
  show();
}

function under(x, y) {
  const reach = view.scale >= CARD_SCALE ? [CARD[0] / 2 * Math.min(1.35, view.scale), CARD[1] / 2 * Math.min(1.35, view.scale)] : [9, 9];
  const broker = brokers.find((b) => Math.abs(atX(b.x) - x) <= reach[0] && Math.abs(atY(b.y) - y) <= reach[1]);
  if (broker) return broker;
  return links.find(({ a, b }) => {
    const ax = atX(a.x), ay = atY(a.y), dx = atX(b.x) - ax, dy = atY(b.y) - ay;
    const t = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
    return Math.hypot(x - ax - t * dx, y - ay - t * dy) < 6;
  }) ?? null;
}

function said(what) {
  if (what.a) return `${what.a.id} – ${what.b.id}\n${what.format || "nothing is known of it"}${what.waiting[0] + what.waiting[1] ? `\n${bytes(what.waiting[0] + what.waiting[1])} waiting` : ""}`;
  const label = what.label ? ` ${what.label}` : "";
  return `${what.id}${label}\n${what.state === "up" ? `${what.profiles.toLocaleString("en")} profiles, ${what.delivered.toLocaleString("en")} delivered${what.waiting ? `\n${bytes(what.waiting)} waiting for users` : ""}` : "does not answer"}`;
}

function bytes(number) {
  for (const unit of ["B", "kB", "MB"]) { if (number < 1000) return `${+number.toPrecision(3)} ${unit}`; number /= 1000; }
  return `${+number.toPrecision(3)} GB`;
}

let drag = null;
canvas.addEventListener("pointerdown", (event) => { drag = { x: event.offsetX, y: event.offsetY, moved: 0 }; canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointermove", (event) => {
  if (drag) {
    const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
    drag = { x: event.offsetX, y: event.offsetY, moved: drag.moved + Math.abs(dx) + Math.abs(dy) };
    Object.assign(view, { x: view.x + dx, y: view.y + dy, isOwn: true });
    return show();
  }
  const found = under(event.offsetX, event.offsetY);
  if (found !== hovered) { hovered = found; show(); }
  canvas.style.cursor = found ? "pointer" : "grab";
  tip.hidden = !found;
  if (found) { tip.textContent = said(found); tip.style.left = `${Math.min(event.offsetX + 14, canvas.clientWidth - 190)}px`; tip.style.top = `${event.offsetY + 14}px`; }
});
canvas.addEventListener("pointerup", (event) => {
  const isClick = drag && drag.moved < 4, found = under(event.offsetX, event.offsetY);
  drag = null;
  if (isClick && found) location.href = found.a ? `/links/${encodeURIComponent(found.a.id)}/${encodeURIComponent(found.b.id)}` : `/brokers/${encodeURIComponent(found.id)}`;
});
canvas.addEventListener("pointerleave", () => { hovered = null; tip.hidden = true; show(); });
canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY); }, { passive: false });
$("find").addEventListener("input", ({ target }) => {
  const wanted = target.value.trim().toLowerCase(), has = (b) => [b.id, b.label].map((text) => text.toLowerCase());
  const found = wanted && (brokers.find((b) => has(b).includes(wanted)) ?? brokers.find((b) => has(b).some((text) => text.includes(wanted))));
  hovered = found || null; tip.hidden = !found;
  if (found) {
    const scale = Math.max(view.scale, 1);
    view = { scale, x: canvas.clientWidth / 2 - scale * found.x, y: canvas.clientHeight / 2 - scale * found.y, isOwn: true };
    tip.textContent = said(found); tip.style.left = `${canvas.clientWidth / 2 + 60}px`; tip.style.top = `${canvas.clientHeight / 2}px`;
  } else if (wanted) { tip.hidden = false; tip.textContent = `no broker has “${wanted}” in its name`; tip.style.left = "1rem"; tip.style.top = "3.5rem"; }
  show();
});
$("find").addEventListener("keydown", ({ key }) => { if (key === "Enter" && hovered?.id) location.href = `/brokers/${encodeURIComponent(hovered.id)}`; });
$("closer").addEventListener("click", () => zoom(1.4));
$("farther").addEventListener("click", () => zoom(1 / 1.4));
$("fit").addEventListener("click", () => { view.isOwn = false; fit(); show(); });
new ResizeObserver(() => { if (!view.isOwn && brokers.length) fit(); show(); }).observe(canvas);
for (const [target, kind] of [[window, "theme"], [matchMedia("(prefers-color-scheme: dark)"), "change"]])
  target.addEventListener(kind, () => { readColours(); show(); });

function showFigures() {
  const now = performance.now(), sum = (name) => brokers.reduce((total, b) => total + b[name], 0);
  const up = brokers.filter((b) => b.state === "up").length;
  const waiting = sum("waiting") + links.reduce((total, l) => total + l.waiting[0] + l.waiting[1], 0);
  const shown = { up: `${up} of ${brokers.length}`, profiles: sum("profiles").toLocaleString("en"), backlog: bytes(waiting), ...rates.shown(now) };
  for (const [id, text] of Object.entries(shown)) if ($(id).textContent !== text) $(id).textContent = text;
  $("spark").firstElementChild.setAttribute("d", rates.path(now));
  const busy = rates.busiest(now, 8).map(([link, rate]) => {
    const item = document.createElement("li"), name = document.createElement("a");
    name.href = `/links/${encodeURIComponent(link.a.id)}/${encodeURIComponent(link.b.id)}`;
    name.textContent = `${link.a.id} – ${link.b.id}`;
    item.append(name, Object.assign(document.createElement("span"), { textContent: `${rate.toFixed(1)} a second` }));
    return item;
  });
  if (busy.length) $("busy").replaceChildren(...busy);
}

readColours();
const events = new EventSource("/v1/map");
events.addEventListener("map", (event) => drawMap(JSON.parse(event.data)));
events.addEventListener("tick", (event) => takeTick(JSON.parse(event.data)));
setInterval(showFigures, 500);

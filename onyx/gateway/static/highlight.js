// A small highlighter: words, texts, names, numbers and comments of the three languages.
const XQUERY = [
  ["c", /\(:[\s\S]*?(:\)|$)/y],
  ["t", /"(?:[^"]|"")*("|$)|'(?:[^']|'')*('|$)/y],
  ["e", /<\/?[A-Za-z_][\w.:-]*|\/?>(?=[\s<{]|$)/y],
  ["d", /\b\d+(\.\d+)?\b/y],
  ["w", /\b(for|let|where|return|in|and|or|not|if|then|else|some|every|satisfies|declare|namespace|default|element|function|order|by|to|div|mod|idiv|eq|ne|lt|le|gt|ge)\b(?![-:(])/y],
  ["e", /[$@][A-Za-z_][\w.:-]*/y],
];
const SPARQL = [
  ["c", /#[^\n]*/y],
  ["t", /"(?:[^"\\]|\\.)*("|$)|'(?:[^'\\]|\\.)*('|$)/y],
  ["e", /<[^<>\s]*>|[?$]\w+/y],
  ["d", /\b\d+(\.\d+)?\b/y],
  ["w", /\b(PREFIX|BASE|SELECT|CONSTRUCT|ASK|WHERE|FILTER|OPTIONAL|UNION|MINUS|DISTINCT|BIND|AS|NOT|EXISTS|IN|a|FROM|ORDER|BY|LIMIT|VALUES)\b/iy],
];
const XML = [
  ["c", /<!--[\s\S]*?(-->|$)|<\?[\s\S]*?(\?>|$)/y],
  ["e", /<\/?[A-Za-z_][\w.:-]*|\/?>/y],
  ["t", /(?<==\s*)("[^"]*("|$)|'[^']*('|$))/y],
  ["w", /\b[A-Za-z_][\w.:-]*(?=\s*=\s*["'])/y],
  ["d", /&[#\w]+;/y],
];
const GRAPH = [["c", /#[^\n]*/y], ["t", /"(?:[^"\\]|\\.)*("|$)/y], ["e", /<[^<>\s]*>/y], ["w", /@prefix|@base|\ba\b/y], ["d", /\b\d+(\.\d+)?\b/y]];

export function languageOf(text, language) {
  if (language === "xquery" && /^\s*(#.*\n\s*)*(PREFIX|BASE|SELECT|CONSTRUCT|ASK)\b/i.test(text)) return SPARQL;
  if (language === "xml") return /^\s*</.test(text) && !/^\s*<[^>\s]*:\/\//.test(text) ? XML : GRAPH;
  return XQUERY;
}

export function highlighted(text, language, wrongAt = -1) {
  const found = document.createDocumentFragment();
  const rules = languageOf(text, language);
  let at = 0, plain = "";
  const put = (kind, piece) => {
    const span = document.createElement("span");
    if (kind) span.className = kind;
    span.textContent = piece;
    found.append(kind ? span : piece);
  };
  while (at < text.length) {
    let hit = null;
    if (at === wrongAt) hit = ["wrong", (/\w+|[^\s]|\s/y.exec(text.slice(at)) ?? [" "])[0]];
    else for (const [kind, rule] of rules) {
      rule.lastIndex = at;
      const match = rule.exec(text);
      if (match && match[0]) { hit = [kind, match[0]]; break; }
    }
    if (hit && wrongAt > at && hit[1].length > wrongAt - at) hit[1] = hit[1].slice(0, wrongAt - at);
    if (hit) { if (plain) put("", plain); plain = ""; put(...hit); at += hit[1].length; }
    else { const step = /[\w.:-]+/y; step.lastIndex = at; const word = step.exec(text)?.[0] ?? text[at];
      const piece = wrongAt > at ? word.slice(0, wrongAt - at) : word; plain += piece; at += piece.length; }
  }
  if (plain) put("", plain);
  return found;
}

// A textarea over its highlighted text; the one scrolls with the other.
export function editor(id) {
  const area = document.getElementById(id), shown = area.previousElementSibling;
  const language = area.parentElement.dataset.language;
  const draw = (wrongAt = -1) => {
    shown.replaceChildren(area.value.length < 200000 ? highlighted(area.value, language, wrongAt) : area.value, "\n");
    shown.scrollTop = area.scrollTop;
  };
  area.addEventListener("input", () => draw());
  area.addEventListener("scroll", () => { shown.scrollTop = area.scrollTop; shown.scrollLeft = area.scrollLeft; });
  draw();
  return {
    area,
    mark(line, column) {
      const lines = area.value.split("\n").slice(0, line - 1);
      draw(line ? lines.join("\n").length + (line > 1 ? 1 : 0) + column - 1 : -1);
    },
  };
}

export function showAll() {
  for (const pre of document.querySelectorAll("pre[data-language]"))
    pre.replaceChildren(highlighted(pre.textContent, pre.dataset.language));
}

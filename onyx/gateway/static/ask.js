// Asks the gateway: the answer, or an Error with its code, line, column and what was expected.
export async function ask(method, path, body, headers = {}) {
  const isText = typeof body === "string";
  const kind = body === undefined ? {} : { "Content-Type": isText ? headers["Content-Type"] : "application/json" };
  const answer = await fetch(path, { method, headers: { ...headers, ...kind }, body: isText || body === undefined ? body : JSON.stringify(body) });
  const isJson = (answer.headers.get("content-type") ?? "").match(/^application\/(problem\+)?json/);
  const said = answer.status === 204 ? null : isJson ? await answer.json() : await answer.text();
  if (!answer.ok) throw Object.assign(new Error(said.reason ?? answer.statusText), said);
  return said;
}

export function place(error) {
  const at = error.line ? `line ${error.line}, column ${error.column}: ` : "";
  return `${at}${error.message}${error.expected ? `; expected ${error.expected}` : ""}`;
}

// A message as Slack shows it: streamed parts with task cards, blocks with buttons, files.

import { element, marked } from "./markup.js";

const marks = { pending: "?", in_progress: "", complete: "✓", error: "✕" };

// message renders m. act is called with what is pressed: {action, value}.
export function message(m, context, act) {
  const w = context.words;
  const article = element("article", { className: "message", tabIndex: -1, id: `m-${m.channel}-${m.ts}` });
  article.classList.toggle("private", Boolean(m.private));
  article.setAttribute("aria-busy", String(Boolean(m.streaming)));
  const head = element("p", { className: "who" }, element("strong", {}, context.name(m.author)));
  if (m.author === context.bot) head.append(" ", element("span", { className: "badge" }, w.app));
  const at = new Date(Number(m.ts) * 1000);
  head.append(" ", element("time", { dateTime: at.toISOString() }, at.toLocaleTimeString(context.locale, { timeStyle: "short" })));
  const body = element("div", { className: "body" }, head);
  if (m.private) body.append(element("p", { className: "note" }, w.onlyYou));
  if (m.parts) body.append(...m.parts.map((part) => (part.task ? card(part.task, w) : marked(part.text, "markdown", context))));
  else if (m.text && !m.blocks) body.append(marked(m.text, "mrkdwn", context));
  body.append(...list(m.blocks, context, act));
  for (const attachment of m.attachments ?? []) body.append(...list(attachment.blocks, context, act));
  body.append(...(m.files ?? []).map((f) => file(f)));
  article.append(element("span", { className: "face", ariaHidden: "true" }, [...context.name(m.author)][0] ?? "?"), body);
  return article;
}

function card(task, words) {
  const e = element("div", { className: `card ${task.status}` });
  const mark = element("span", { className: "mark", ariaHidden: "true" }, marks[task.status] ?? "");
  const title = element("span", { className: "title" }, task.title, element("span", { className: "hidden" }, ` (${words.status[task.status] ?? task.status})`));
  e.append(mark, title);
  if (task.output) e.append(element("span", { className: "output" }, task.output));
  return e;
}

// list renders blocks. act may be missing where there are no buttons.
export const list = (blocks, context, act) => (Array.isArray(blocks) ? blocks : []).map((b) => block(b, context, act)).filter(Boolean);

function block(b, context, act) {
  switch (b.type) {
    case "section":
      return b.text ? text(b.text, context) : null;
    case "rich_text":
      return element("div", { className: "text plain" }, ...(b.elements ?? []).map(rich));
    case "context":
      return element("div", { className: "context" }, ...(b.elements ?? []).map((t) => text(t, context)));
    case "actions":
      return element("div", { className: "actions" }, ...(b.elements ?? []).filter((e) => e.type === "button").map((e) => button(e, act)));
    case "context_actions":
      return element("div", { className: "actions" }, ...(b.elements ?? []).flatMap((e) => feedback(e, act)));
  }
  return null;
}

function rich(e) {
  const parts = (e.elements ?? []).filter((t) => t.type === "text").map((t) => (t.style?.bold ? element("b", {}, t.text) : t.text));
  return e.type === "rich_text_preformatted" ? element("pre", {}, ...parts) : element("div", {}, ...parts);
}

function text(t, context) {
  if (t.type === "mrkdwn") return marked(t.text, "mrkdwn", context);
  return element("div", { className: "text plain" }, t.text);
}

function button(b, act) {
  if (/^https?:\/\//.test(b.url ?? "")) return page(b, act);
  const e = element("button", { type: "button", className: b.style ?? "" }, b.text.text);
  e.addEventListener("click", () => {
    e.disabled = true;
    act({ action: b.action_id, value: b.value ?? "" }).finally(() => (e.disabled = false));
  });
  return e;
}

// page is a button that opens an address. The bot gets an event for it as well.
function page(b, act) {
  const e = element("a", { className: `button ${b.style ?? ""}`, href: b.url, target: "_blank", rel: "noopener noreferrer" }, b.text.text);
  e.addEventListener("click", () => act({ action: b.action_id, value: b.value ?? "" }));
  return e;
}

// feedback is a pair of buttons, one of which is pressed.
function feedback(f, act) {
  if (f.type !== "feedback_buttons") return [];
  const pair = [f.positive_button, f.negative_button].map((b) => {
    const e = element("button", { type: "button", className: "feedback", ariaPressed: "false" }, b.text.text);
    e.addEventListener("click", () => {
      for (const other of pair) other.ariaPressed = String(other === e);
      act({ action: f.action_id, value: b.value });
    });
    return e;
  });
  return pair;
}

function file(f) {
  const size = f.size < 1024 ? `${f.size} B` : `${(f.size / 1024).toFixed(1)} KB`;
  return element("p", {}, element("a", { className: "file", href: `api/files/${encodeURIComponent(f.id)}`, download: f.name }, f.name), ` ${size}`);
}

// Slack's two ways to mark up text, as elements. Nothing here makes HTML from text.

const emoji = {
  white_check_mark: "✅", no_entry: "⛔", hourglass: "⌛", hourglass_flowing_sand: "⏳", heavy_minus_sign: "➖", raised_hand: "✋",
  x: "❌", warning: "⚠️", tada: "🎉", eyes: "👀", wave: "👋", "+1": "👍", "-1": "👎", umbrella: "☔", sunny: "☀️",
};

const entities = { "&lt;": "<", "&gt;": ">", "&amp;": "&" };
const unescape = (text) => text.replace(/&(?:lt|gt|amp);/g, (e) => entities[e]);

export function element(name, properties = {}, ...children) {
  const e = Object.assign(document.createElement(name), properties);
  e.append(...children);
  return e;
}

function anchor(address, children) {
  if (!/^https?:\/\//.test(address)) return element("span", {}, ...children);
  return element("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

// control renders the parts between < and > in Slack's markup: mentions, dates, links.
function control(inside, context) {
  const [what, shown] = inside.split("|", 2);
  if (what.startsWith("@")) return element("span", { className: "mention" }, "@" + context.name(what.slice(1)));
  if (what.startsWith("#")) return element("span", { className: "mention" }, "#" + context.place(what.slice(1)));
  if (what.startsWith("!date^")) {
    const at = new Date(Number(what.split("^")[1]) * 1000);
    const text = at.toLocaleString(context.locale, { dateStyle: "medium", timeStyle: "short" });
    return element("time", { dateTime: at.toISOString() }, text);
  }
  if (what.startsWith("!")) return element("span", { className: "mention" }, "@" + what.slice(1));
  if (/^https?:\/\//.test(what)) return anchor(unescape(what), [unescape(shown ?? what)]);
  return document.createTextNode(`<${inside}>`);
}

// Spans of a line: a pattern for each kind, the first that matches at a place counts.
const common = [
  [/`([^`\n]+)`/y, (m) => element("code", {}, unescape(m[1]))],
  [/<([^<>\n]+)>/y, (m, c) => control(m[1], c)],
  [/https?:\/\/[^\s<>)]+[^\s<>).,。、]/y, (m) => anchor(unescape(m[0]), [unescape(m[0])])],
  [/:([a-z0-9_+-]+):/y, (m) => document.createTextNode(emoji[m[1]] ?? m[0])],
];
const within = (name, syntax) => (m, c) => element(name, {}, ...inline(m[1], syntax, c));
const syntaxes = {
  markdown: [
    [/!?\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)/y, (m, c) => anchor(unescape(m[2]), inline(m[1], "markdown", c))],
    [/\*\*(\S(?:.*?\S)?)\*\*/y, within("strong", "markdown")],
    [/__(\S(?:.*?\S)?)__/y, within("strong", "markdown")],
    [/~~(\S(?:.*?\S)?)~~/y, within("s", "markdown")],
    [/\*([^\s*](?:[^*]*[^\s*])?)\*/y, within("em", "markdown")],
    [/(?<![\p{L}\p{N}_])_([^\s_](?:.*?[^\s_])?)_(?![\p{L}\p{N}_])/uy, within("em", "markdown")],
    ...common,
  ],
  mrkdwn: [
    [/\*([^\s*](?:[^*\n]*[^\s*])?)\*/y, within("strong", "mrkdwn")],
    [/(?<![\p{L}\p{N}_])_([^\s_](?:.*?[^\s_])?)_(?![\p{L}\p{N}_])/uy, within("em", "mrkdwn")],
    [/~([^\s~](?:[^~\n]*[^\s~])?)~/y, within("s", "mrkdwn")],
    ...common,
  ],
};

function inline(text, syntax, context) {
  const out = [];
  let plain = 0;
  for (let at = 0; at < text.length; ) {
    const hit = "`<h:![*_~".includes(text[at]) && first(text, at, syntaxes[syntax]);
    if (!hit) {
      at++;
      continue;
    }
    if (plain < at) out.push(unescape(text.slice(plain, at)));
    out.push(hit.make(hit.match, context));
    plain = at += hit.match[0].length;
  }
  if (plain < text.length) out.push(unescape(text.slice(plain)));
  return out;
}

function first(text, at, spans) {
  for (const [pattern, make] of spans) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match) return { match, make };
  }
  return null;
}

// blocks are the kinds of paragraphs: what their lines begin with, and what they become.
const blocks = {
  markdown: [
    [/^\s*[-*+•]\s+/, "ul"],
    [/^\s*\d+[.)]\s+/, "ol"],
    [/^\s*&gt;\s?|^\s*>\s?/, "blockquote"],
    [/^#{1,6}\s+/, "h3"],
  ],
  mrkdwn: [[/^(?:&gt;|>)\s?/, "blockquote"]],
};

// marked is text in one of the two syntaxes ("markdown" or "mrkdwn").
export function marked(text, syntax, context) {
  const out = element("div", { className: "text" });
  text.split(/^[ \t]*```[^\n]*$/m).forEach((section, i) => {
    if (i % 2 === 1) {
      out.append(element("pre", {}, element("code", {}, unescape(section.replace(/^\n|\n$/g, "")))));
      return;
    }
    for (const paragraph of section.split(/\n{2,}/)) if (paragraph.trim()) lines(out, paragraph, syntax, context);
  });
  return out;
}

// lines are those of a paragraph: runs of the same kind become one element.
function lines(out, paragraph, syntax, context) {
  let open = null;
  for (const line of paragraph.replace(/^\n|\n$/g, "").split("\n")) {
    const [prefix, kind] = blocks[syntax].find(([pattern]) => pattern.test(line)) ?? [null, "p"];
    const content = inline(prefix ? line.replace(prefix, "") : line, syntax, context);
    if (open?.localName !== kind || kind === "h3") out.append((open = element(kind)));
    else if (kind === "p" || kind === "blockquote") open.append(element("br"));
    if (kind === "ul" || kind === "ol") open.append(element("li", {}, ...content));
    else open.append(...content);
  }
}

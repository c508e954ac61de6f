// The page: what the server streams is kept here, and what changes is shown.

import { composer } from "./composer.js";
import { element } from "./markup.js";
import { message } from "./message.js";
import { modal } from "./modal.js";
import { wordsFor } from "./words.js";

const $ = (id) => document.getElementById(id);
const state = { me: new URLSearchParams(location.search).get("as") ?? "", space: null, sessions: {}, modals: [], messages: new Map(), place: "", thread: "", asked: null };
let words = wordsFor("en");
let source = null;

const key = (m) => `${m.channel}:${m.ts}`;
const sorted = () => [...state.messages.values()].sort((a, b) => (a.ts < b.ts ? -1 : 1));
const member = (id) => state.space?.people.find((p) => p.id === id);
const isDM = () => state.space.channels.find((c) => c.id === state.place)?.dm;

const context = () => ({
  words,
  bot: state.space.bot,
  locale: member(state.me)?.locale,
  name: (id) => (id === state.space.bot ? state.space.botName : (member(id)?.real ?? id)),
  place: (id) => state.space.channels.find((c) => c.id === id)?.name ?? id,
});

function say(text) {
  $("toast").textContent = text;
  $("toast").hidden = !text;
}

async function ask(path, body, type = "application/json") {
  try {
    const response = await fetch(`api/${path}${path.includes("?") ? "&" : "?"}as=${state.me}`, { method: "POST", body, headers: { "Content-Type": type } });
    if (!response.ok) throw new Error((await response.text()).trim());
    say("");
    return response;
  } catch (e) {
    say(words.failed(e.message));
    throw e;
  }
}
const post = (path, body) => ask(path, JSON.stringify(body));
const upload = async (f) => (await (await ask(`files?name=${encodeURIComponent(f.name)}`, f, f.type || "application/octet-stream")).json()).id;

async function send(thread, { text, files }) {
  if (text.startsWith("/")) return post("commands", { channel: state.place, text });
  await state.history.promise;
  if (!thread) state.asked = sorted().at(-1)?.ts ?? ""; // what comes now is newer
  return post("messages", { channel: state.place, thread, text, files });
}

// connect follows what the person sees.
function connect(me) {
  source?.close();
  state.history?.resolve();
  Object.assign(state, { me, messages: new Map(), sessions: {}, modals: [], history: Promise.withResolvers() });
  modals();
  source = new EventSource(`api/stream?as=${encodeURIComponent(me)}`);
  source.addEventListener("workspace", (e) => {
    state.space = JSON.parse(e.data);
    state.me = state.space.me;
    settle();
  });
  source.addEventListener("sessions", (e) => {
    state.sessions = JSON.parse(e.data);
    session();
  });
  source.addEventListener("modals", (e) => {
    state.modals = JSON.parse(e.data);
    modals();
    state.history.resolve(); // what was there at first ends with the modals
  });
  source.addEventListener("messages", (e) => {
    const fresh = JSON.parse(e.data);
    for (const m of fresh) state.messages.set(key(m), m);
    update(fresh);
  });
  source.onopen = () => say("");
  source.onerror = () => say(words.lost);
}

// settle shows who the person is and where they can be.
function settle() {
  words = wordsFor(member(state.me)?.locale);
  document.documentElement.lang = words === wordsFor("ja") ? "ja" : "en";
  if (!state.space.channels.some((c) => c.id === state.place)) {
    state.place = (state.space.channels.find((c) => !c.dm) ?? state.space.channels[0]).id;
    state.thread = "";
  }
  $("fake").textContent = words.fake;
  $("you-are").textContent = words.youAre;
  $("person").replaceChildren(
    ...state.space.people.map((p) => element("option", { value: p.id, selected: p.id === state.me }, `${p.real} (@${p.name}, ${p.locale.slice(0, 2)})`)),
  );
  $("close").textContent = words.close;
  show();
}

function places() {
  const group = (title, channels, name) => [
    element("h2", {}, title),
    element("ul", {}, ...channels.map((c) => {
      const b = element("button", { type: "button" }, name(c));
      if (c.id === state.place) b.setAttribute("aria-current", "page");
      b.addEventListener("click", () => go(c.id, ""));
      return element("li", {}, b);
    })),
  ];
  $("places").setAttribute("aria-label", words.channels);
  $("places").replaceChildren(
    ...group(words.channels, state.space.channels.filter((c) => !c.dm), (c) => `# ${c.name}`),
    ...group(words.direct, state.space.channels.filter((c) => c.dm), () => state.space.botName),
  );
}

function go(place, thread) {
  Object.assign(state, { place, thread });
  show();
  (thread ? reply : compose).focus();
}

// show draws everything anew.
function show() {
  if (!state.space) return;
  const title = isDM() ? state.space.botName : `# ${context().place(state.place)}`;
  $("place").textContent = title;
  document.title = `${title} – hako`;
  places();
  $("messages").replaceChildren();
  $("replies").replaceChildren();
  $("thread").hidden = !state.thread;
  document.body.classList.toggle("threaded", Boolean(state.thread));
  $("thread-title").textContent = words.thread;
  compose.label(words, words.message(title), isDM() ? words.message(title) : `${words.message(title)} – ${words.hint(state.space.botName)}`);
  reply.label(words, words.reply, words.reply);
  update(sorted());
  session();
}

// update draws messages, in the order in which they were written.
function update(fresh) {
  if (!state.space) return;
  for (const m of fresh) {
    if (m.channel !== state.place) continue;
    const thread = m.thread || m.ts;
    if (thread === m.ts) put($("messages"), m, root(m));
    if (thread === state.thread) put($("replies"), m, render(m));
    const first = state.messages.get(`${m.channel}:${thread}`);
    if (thread !== m.ts && first) put($("messages"), first, root(first));
    // An answer to what this person has just written opens by itself.
    if (thread !== m.ts && !state.thread && first?.author === state.me && state.asked !== null && thread > state.asked) {
      state.asked = null;
      go(state.place, thread);
    }
  }
  const empty = !$("messages").querySelector(".message");
  $("messages").querySelector(".begin")?.remove();
  if (empty) $("messages").append(begin());
}

const render = (m) => message(m, context(), ({ action, value }) => post("presses", { channel: m.channel, ts: m.ts, action, value }));

// root is a message of the channel, with the way to its thread.
function root(m) {
  const e = render(m);
  const replies = sorted().filter((r) => r.channel === m.channel && r.thread === m.ts && r.ts !== m.ts).length;
  if (replies || !m.private) {
    const open = element("button", { type: "button", className: "quiet replies" }, replies ? words.replies(replies) : words.reply);
    open.setAttribute("aria-label", `${open.textContent}: ${words.open}`);
    open.addEventListener("click", () => go(m.channel, m.ts));
    e.querySelector(".body").append(open);
  }
  return e;
}

// put places a message in a log, in the place of what it was before. Whoever is at the end of the log stays there.
function put(log, m, e) {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const old = log.querySelector(`[data-ts="${m.ts}"]`);
  e.dataset.ts = m.ts;
  e.removeAttribute("id");
  if (old) {
    const focused = old.contains(document.activeElement) && document.activeElement !== old;
    old.replaceWith(e);
    if (focused) e.focus({ preventScroll: true });
  } else {
    const next = [...log.querySelectorAll(".message")].find((other) => other.dataset.ts > m.ts);
    log.insertBefore(e, next ?? null);
  }
  if (atEnd) log.scrollTop = log.scrollHeight;
}

// begin shows examples to try in an empty conversation.
function begin() {
  const mention = isDM() ? "" : `@${state.space.botName} `;
  const chips = [...words.prompts.map((p) => mention + p), words.command].map((text) => {
    const b = element("button", { type: "button" }, text);
    b.addEventListener("click", () => send("", { text, files: [] }));
    return b;
  });
  return element("div", { className: "begin" }, element("p", {}, words.begin), element("div", { className: "chips" }, ...chips));
}

// session shows what the bot does in the thread, and the button that stops it.
function session() {
  const status = state.sessions[`${state.place}:${state.thread}`];
  const busy = Boolean(state.space && state.thread) && (status === "processing" || status === "suspended");
  $("session").hidden = !busy;
  if (!busy) return;
  const text = `${state.space.botName} ${words[status]}`;
  if ($("session").firstChild?.textContent === text) return;
  const stop = element("button", { type: "button" }, words.stop);
  stop.addEventListener("click", () => post("stops", { channel: state.place, thread: state.thread }));
  $("session").replaceChildren(element("span", {}, text), stop);
}

// modals shows the last one that is open. One that is there stays as it is, with what was written into it.
function modals() {
  const top = state.modals.at(-1);
  const shown = document.querySelector("dialog");
  if (shown?.dataset.view === top?.id) return;
  shown?.close();
  shown?.remove();
  if (!top || !state.space) return;
  const dialog = modal(top.view, context(), {
    submit: async (values) => (await (await post("submissions", { view: top.id, values })).json()).errors,
    leave: () => post("closings", { view: top.id }),
  });
  dialog.dataset.view = top.id;
  document.body.append(dialog);
  dialog.showModal();
}

const compose = composer($("compose"), { send: (m) => send("", m), post: upload });
const reply = composer($("reply"), { send: (m) => send(state.thread, m), post: upload });
$("person").addEventListener("change", (e) => {
  history.replaceState(null, "", `?as=${e.target.value}`); // so that each window can be somebody else
  connect(e.target.value);
});
$("close").addEventListener("click", () => go(state.place, ""));
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape" && state.thread && !state.modals.length && !e.isComposing) go(state.place, "");
});

connect(state.me);

// Pieces that several views show: badges, facts, code, refusals, page heads.
import { h, icon } from './dom.js'
import { ago, bytes, dateAndMinute, milliseconds, stamp, t, term, time } from './language.js'
import { OfflineError } from './server.js'

/** tones sorts the server's words by what they mean for who looks. What is not here is neutral. */
const tones = {
  ok: 'good', valid: 'good', active: 'good', up: 'good', ready: 'good', approved: 'good', allow: 'good', begun: 'plain',
  pending: 'warn', asked: 'warn', 'not connected': 'warn', connecting: 'warn', ask: 'warn', busy: 'warn', canceled: 'plain', stopped: 'plain', idle: 'plain', running: 'live', invalid_arguments: 'warn',
  broken: 'bad', conflict: 'bad', down: 'bad', failed: 'bad', reconnect: 'bad', unusable: 'bad', deny: 'bad', not_allowed: 'bad', tool_error: 'bad', trap: 'bad',
  timeout: 'bad', cpu: 'bad', memory: 'bad', size: 'bad', internal: 'bad', invalid_result: 'bad', not_found: 'warn', refused: 'bad',
}

/** badge is a word of the server's with its colour. The word says it all; the colour only helps. */
export function badge(set, word) {
  return h('span', { class: `badge ${tones[word] ?? 'plain'}` }, term(set, word))
}

/** code is a text of somebody else's, in a fixed pitch. Where it does not fit, it breaks after a sign between words. */
export function code(text) {
  return h('code', {}, String(text ?? '').split(/(?<=[_/.:-])/).map((part, i) => [i > 0 && h('wbr'), part]))
}

/** callLink links to the page of a call; null without an ID. */
export function callLink(id) {
  return id ? h('a', { href: `#/calls/${encodeURIComponent(id)}` }, code(id)) : null
}

/** piece is how many characters of a listing form a block: the browser needs seconds to lay out a line of 200,000. */
const piece = 10_000

/** listing is a longer text. Its beginning is shown, and as much again with each press of a button. */
export function listing(text, label) {
  let end = 0
  const body = h('pre', { tabindex: 0, 'aria-label': label })
  const grow = () => {
    for (const wanted = Math.max(2 * end, 2 * piece); end < Math.min(wanted, text.length);) {
      let next = text.lastIndexOf('\n', end + piece - 1) + 1
      if (next <= end || text.length <= end + piece) next = end + piece
      if (/[\uD800-\uDBFF]/.test(text[next - 1])) next++ // not within a character
      body.append(h('span', { class: 'piece' }, text.slice(end, next)))
      end = next
    }
    more.hidden = end >= text.length
  }
  const more = h('button', { type: 'button', class: 'small', onclick: () => {
    grow()
    body.focus()
  } }, t('result.more', { size: bytes(text.length) }))
  grow()
  return h('div', { class: 'listing' }, body, copyButton(text), !more.hidden && more)
}

/** copyable is an ID or a command with a button that copies it; null without one. */
export function copyable(text) {
  return text ? h('span', { class: 'copyable' }, code(text), copyButton(text)) : null
}

function copyButton(text) {
  const said = h('small', { role: 'status' })
  const button = h('button', { type: 'button', class: 'plain copy', 'aria-label': t('copy'), title: t('copy'), onclick: async () => {
    said.textContent = await copyText(text)
    setTimeout(() => said.replaceChildren(), 3000)
  } }, icon('copy'))
  return h('span', { class: 'copying' }, said, button)
}

/** facts lists what is known of a thing. Those without a value are left out. */
export function facts(pairs) {
  return h('dl', { class: 'facts' }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false)
    .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))))
}

/** signature says who signed a plugin, as hako verified it; null where there is nothing to verify, as for shipped plugins. */
export function signature(signer) {
  if (!signer) return null
  if (signer.key) return [t('plugins.signedKey'), ' ', code(signer.key)]
  return signer.subject ? [code(signer.subject), ` (${signer.issuer})`] : h('span', { class: 'badge plain' }, t('plugins.unsigned'))
}

/** when is a moment, short, with the whole of it for those who ask. */
export function when(text, shown = time(text)) {
  return h('time', { datetime: text, title: stamp(text) }, shown)
}

/** dated is a date with the minute, for what lasts for days. */
export function dated(text) {
  return when(text, dateAndMinute(text))
}

/** since is how long ago a moment was, with the whole of it for those who ask. */
export function since(text) {
  const element = when(text, ago(text))
  element.className = 'since'
  return element
}

/** refresh says how long ago it is now: rows that stay the same are not written again. */
export function refresh(element) {
  element.textContent = ago(element.dateTime)
}

/** took is a duration, or a dash. */
export function took(value) {
  return typeof value === 'number' ? milliseconds(value) : '–'
}

/** head is the head of a view. */
export function head(title, ...beside) {
  return h('header', { class: 'head' }, h('h1', { tabindex: -1 }, title), h('div', { class: 'beside' }, beside))
}

/** card is a part of a view under a heading. */
export function card(title, ...content) {
  return h('section', { class: 'card' }, h('h2', {}, title), content)
}

/** panel is a part that has its own heading. */
export function panel(...content) {
  return h('section', { class: 'card' }, content)
}

/** problem says what went wrong, and what to do. What is neither a refusal nor a server that is away went wrong in the page. */
export function problem(error) {
  if (error.role) return h('p', { class: 'problem' }, t('needs.role', { role: term('role', error.role) }))
  return h('div', { class: 'problem' },
    h('p', {}, error.status !== undefined ? error.message : t(error instanceof OfflineError ? 'unreached' : 'page.broken')),
    error.remedy && h('p', {}, error.remedy))
}

const order = ['viewer', 'approver', 'admin']

/** may reports whether the session has the role. */
export function may(session, role) {
  return order.indexOf(session.user.role) >= order.indexOf(role)
}

/**
 * guarded makes buttons for what needs a role. Who does not have it sees the buttons, cannot press them, and hears why. They can be reached by the
 * keyboard all the same: a reason that nobody can reach is none.
 */
export function guarded(session, role, ...buttons) {
  const wanted = buttons.filter(Boolean)
  if (may(session, role) || wanted.length === 0) return wanted
  const why = t('needs.role', { role: term('role', role) })
  const dead = wanted.map(button => {
    const copy = button.cloneNode(true)
    copy.setAttribute('aria-disabled', 'true')
    copy.title = why
    copy.addEventListener('click', event => event.preventDefault())
    return copy
  })
  return h('span', { class: 'guarded' }, dead, h('small', {}, why))
}

/** copyText copies a text to the clipboard, and returns what to tell about it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text)
  } catch { // also where the page is not served over HTTPS, which has no clipboard
    return t('copy.refused')
  }
  return t('copy.done')
}

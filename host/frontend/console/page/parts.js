// Components that several views share: badges, facts, code, errors, page heads.
import { h, icon } from './dom.js'
import { ago, bytes, dateAndMinute, milliseconds, stamp, t, term, time } from './language.js'
import { OfflineError } from './server.js'

/** tones maps the server's words to colours. Words that are missing are neutral. */
const tones = {
  ok: 'good', valid: 'good', active: 'good', up: 'good', ready: 'good', approved: 'good', allow: 'good', begun: 'plain',
  pending: 'warn', asked: 'warn', 'not connected': 'warn', connecting: 'warn', ask: 'warn', busy: 'warn', canceled: 'plain', stopped: 'plain', idle: 'plain', running: 'live', invalid_arguments: 'warn',
  broken: 'bad', conflict: 'bad', down: 'bad', failed: 'bad', reconnect: 'bad', unusable: 'bad', deny: 'bad', not_allowed: 'bad', tool_error: 'bad', trap: 'bad',
  timeout: 'bad', cpu: 'bad', memory: 'bad', size: 'bad', internal: 'bad', invalid_result: 'bad', not_found: 'warn', refused: 'bad',
}

/** badge shows a word of the server with its colour. The colour adds no information. */
export function badge(set, word) {
  return h('span', { class: `badge ${tones[word] ?? 'plain'}` }, term(set, word))
}

/** code shows an identifier or a foreign text in monospace. Long texts break after punctuation. */
export function code(text) {
  return h('code', {}, String(text ?? '').split(/(?<=[_/.:-])/).map((part, i) => [i > 0 && h('wbr'), part]))
}

/** callLink links to the page of a call; null without an ID. */
export function callLink(id) {
  return id ? h('a', { href: `#/calls/${encodeURIComponent(id)}` }, code(id)) : null
}

/** why links to the explanation of the policy's decision about a call, with the form filled in; null if there is nothing to explain. */
export function why({ name, decision, outcome, who: caller = {} }) {
  if (!name || !caller.frontend || !decision && outcome !== 'not_allowed') return null
  const { user, tenant, token, frontend } = caller
  const query = new URLSearchParams(Object.entries({ tool: name, user, tenant, token, frontend }).filter(([, value]) => value))
  return h('a', { href: `#/policy/explain?${query}` }, t('policy.explain'))
}

/** ruleLink links to a rule of the policy, with its line in the file; null without one. */
export function ruleLink(rule) {
  return rule ? h('a', { href: `#/policy?${new URLSearchParams({ rule })}` }, term('ownrule', rule)) : null
}

/** piece is the number of characters in a block of a listing: the browser needs seconds to lay out a line of 200,000. */
const piece = 10_000

/** listing shows a long text: its beginning, and the next part with each press of a button. */
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

/** copyable shows an ID or a command with a copy button; null if there is none. */
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

/** facts makes a list of names and values. Entries without a value are omitted. */
export function facts(pairs) {
  return h('dl', { class: 'facts' }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false)
    .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))))
}

/** signature shows the verified signer of a plugin; null if there is nothing to verify, as for shipped plugins. */
export function signature(signer) {
  if (!signer) return null
  if (signer.key) return [t('plugins.signedKey'), ' ', code(signer.key)]
  return signer.subject ? [code(signer.subject), ` (${signer.issuer})`] : h('span', { class: 'badge plain' }, t('plugins.unsigned'))
}

/** when shows a time in short form; the tooltip has the full date. */
export function when(text, shown = time(text)) {
  return h('time', { datetime: text, title: stamp(text) }, shown)
}

/** dated shows a date with hour and minute, for things that last for days. */
export function dated(text) {
  return when(text, dateAndMinute(text))
}

/** since shows the time that has passed since a moment; the tooltip has the full date. */
export function since(text) {
  const element = when(text, ago(text))
  element.className = 'since'
  return element
}

/** refresh updates the relative times: unchanged rows are not rendered again. */
export function refresh(element) {
  element.textContent = ago(element.dateTime)
}

/** took formats a duration, or a dash if there is none. */
export function took(value) {
  return typeof value === 'number' ? milliseconds(value) : '–'
}

/** head makes the head of a view. */
export function head(title, ...beside) {
  return h('header', { class: 'head' }, h('h1', { tabindex: -1 }, title), h('div', { class: 'beside' }, beside))
}

/** card makes a section of a view with a heading. */
export function card(title, ...content) {
  return h('section', { class: 'card' }, h('h2', {}, title), content)
}

/** panel makes a section that brings its own heading. */
export function panel(...content) {
  return h('section', { class: 'card' }, content)
}

/** problem shows an error and its remedy. An error that is neither an APIError nor an OfflineError is a defect of the page. */
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
 * guarded makes buttons that need a role. Without the role they are disabled and explain why. They stay reachable by keyboard, so that everybody can read the
 * explanation.
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

/** copyText copies a text to the clipboard, and returns the message to show. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text)
  } catch { // also where the page is not served over HTTPS, which has no clipboard
    return t('copy.refused')
  }
  return t('copy.done')
}

// The card of a pending approval.
import { always } from './allow.js'
import { h, put, uniqueID } from './dom.js'
import { countdown, t } from './language.js'
import { badge, code, facts, guarded, listing, may, problem, when } from './parts.js'
import { post, segment } from './server.js'

/** settled is the time for which buttons ignore presses after they appeared or moved, in ms. */
const settled = 500

/**
 * questionCard shows one question. end marks it as answered elsewhere, fold collapses an answered one, and tick updates the clock and the buttons; call it
 * about every 250 ms. answered is called after an answer was given here.
 */
export function questionCard(page, question, answered) {
  const titleID = uniqueID('question')
  const reasonID = uniqueID('reason')
  const reason = h('input', { id: reasonID, maxlength: 160, autocomplete: 'off' })
  const trouble = h('div', { role: 'alert' })
  const buttons = h('div', { class: 'answers' })
  const clock = h('span', { class: 'clock' })
  const { description } = question
  const title = h('h2', { id: titleID }, description.ask)
  const header = h('header', {}, title, clock)
  let sent = false
  let ready = false
  const enable = () => {
    for (const button of buttons.querySelectorAll('button')) button.disabled = sent || !ready
  }
  const give = answer => async () => {
    sent = true
    enable()
    try {
      await post(`approvals/${segment(question.id)}`, { answer, reason: reason.value || undefined })
      end(badge('answer', answer === 'yes' ? 'approved' : 'refused'), ' ', when(new Date().toISOString()))
    } catch (error) {
      put(trouble, problem(error))
      sent = false
      enable()
    }
    answered()
  }
  put(buttons,
    may(page.session, 'approver') && h('div', { class: 'field' }, h('label', { for: reasonID }, t('approvals.reason')), reason),
    guarded(page.session, 'approver',
      h('button', { type: 'button', onclick: give('no') }, t('approvals.refuse')),
      h('button', { type: 'button', class: 'primary', onclick: give('yes') }, t('approvals.allow'))))
  const element = h('section', { class: 'card question', 'aria-labelledby': titleID },
    header,
    description.about && h('p', { class: 'hint' }, description.about),
    description.detail && listing(description.detail, t('approvals.detail')),
    (description.values ?? []).length > 0 && facts(description.values.map(value => [code(value.name || '–'), shown(value)])),
    (description.effects ?? []).length > 0 && h('p', { class: 'effects' }, description.effects.join(' ')),
    facts([
      ...description.facts.map(({ name, text }) => [name, text]),
      [t('approvals.remember'), question.remember && t('approvals.remembered', { time: question.remember })],
    ]),
    (description.values ?? []).length > 0 && exact(page, question),
    may(page.session, 'approver') && always(page, question),
    question.may || !may(page.session, 'approver') ? buttons : h('p', { class: 'notice' }, question.why), trouble)
  // Presses that would be ignored are visibly impossible: the buttons are disabled until they have been in place for long enough.
  const steady = guardPresses(element, buttons, () => {
    ready = false
    enable()
  })

  let ended = false
  const end = (...outcome) => {
    if (ended) return
    ended = true
    const focused = element.contains(document.activeElement)
    // The card keeps its place, its height and what was asked until it is folded; only what answers it goes.
    element.classList.add('answered')
    element.tabIndex = -1
    buttons.style.visibility = 'hidden'
    buttons.inert = true
    put(clock, outcome.length > 0 ? outcome : t(new Date(question.expires) <= Date.now() ? 'approvals.expired' : 'approvals.elsewhere'))
    clock.classList.remove('urgent')
    if (focused) element.focus({ preventScroll: true })
  }
  return {
    element, end,
    fold() {
      if (ended) put(element, header, trouble)
    },
    tick() {
      if (ended) return
      ready = steady()
      enable()
      clock.textContent = t('approvals.left', { time: countdown(question.expires) })
      clock.classList.toggle('urgent', new Date(question.expires) - Date.now() < 30_000)
    },
  }
}

/** exact is the collapsed section with the exact arguments, which are loaded when it is opened. */
function exact(page, question) {
  const body = h('div')
  let loaded = false
  const toggled = async () => {
    if (!element.open || loaded) return
    loaded = true
    try {
      const { json } = await page.get(`approvals/${segment(question.id)}/arguments`)
      put(body, listing(json, t('approvals.json')))
    } catch (error) {
      loaded = false
      if (error.name !== 'AbortError') put(body, problem(error))
    }
  }
  const element = h('details', { ontoggle: toggled }, h('summary', {}, t('approvals.json')), body)
  return element
}

/** folded is the number of lines from which a text is folded. */
const folded = 12

/** kinds maps the first character of a line of a comparison to its element. */
const kinds = { '-': 'del', '+': 'ins' }

/** comparison shows the lines that an argument changes. The marks + and - are kept: colours alone do not distinguish them. */
function comparison({ name, diff }) {
  return h('pre', { class: 'diff', tabindex: 0, 'aria-label': name }, diff.map(line => h(kinds[line[0]] ?? 'span', {}, line)))
}

/** shown is one argument: a line, a text that folds if it is long, or a table. */
function shown(value) {
  const rest = value.cut && h('small', {}, value.cut)
  if (value.rows) {
    return h('div', {}, h('div', { class: 'values', tabindex: 0, role: 'region', 'aria-label': value.name }, h('table', {},
      value.columns && h('thead', {}, h('tr', {}, value.columns.map(name => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, value.rows.map(row => h('tr', {}, row.map(cell => h('td', {}, cell))))))), rest)
  }
  if (value.diff) return h('div', {}, comparison(value), rest)
  const text = value.text ?? ''
  const lines = text.split('\n')
  if (lines.length === 1 && text.length <= 120) return h('span', {}, text, rest)
  if (lines.length <= folded) return h('div', {}, listing(text, value.name), rest)
  return h('details', {}, h('summary', {}, t('approvals.lines', { n: lines.length, first: lines[0].slice(0, 60) })), listing(text, value.name), rest)
}

/**
 * guardPresses ignores presses of a card's buttons until they have been in one place for the time settled. It returns a function that checks their position
 * and enables them; the view calls it often. Their place is that of the card's end: while a long card is scrolled, the buttons
 * stay in view, and so move on the page but not under the pointer.
 */
function guardPresses(card, buttons, refused) {
  let place
  let since = 0
  let tooEarly = false
  const steady = () => {
    const now = card.getBoundingClientRect().bottom + scrollY
    if (!(Math.abs(now - place) < 2)) { // less is rounding, and moves nothing under the pointer
      place = now
      since = performance.now()
    }
    return performance.now() - since >= settled
  }
  buttons.addEventListener('pointerdown', () => { tooEarly = !steady() }, { capture: true })
  buttons.addEventListener('click', event => {
    if (!event.target.closest('button') || (!tooEarly && steady())) return
    tooEarly = false
    refused()
    event.stopPropagation()
    event.preventDefault()
  }, { capture: true })
  return steady
}

// Questions that wait for somebody's answer.
import { h, put, uniqueID } from '../dom.js'
import { countdown, t, term } from '../language.js'
import { badge, code, facts, guarded, head, listing, may, problem } from '../parts.js'
import { live, post, segment } from '../server.js'

export default function approvals(page) {
  const list = h('div', { class: 'questions' })
  const empty = h('p', { class: 'empty', hidden: true }, t('approvals.empty'))
  put(page.root, head(t('nav.approvals')), h('p', { class: 'hint' }, t('approvals.about')), list, empty)
  const cards = new Map()
  const again = page.poll(10_000, async () => {
    const { items } = await page.get('approvals')
    page.waiting(items.length)
    const ids = new Set(items.map(question => question.id))
    for (const [id, card] of cards) {
      if (ids.has(id)) continue
      card.remove()
      cards.delete(id)
    }
    for (const question of items) {
      if (cards.has(question.id)) continue
      cards.set(question.id, questionCard(page, question, () => again()))
      list.append(cards.get(question.id))
    }
    empty.hidden = items.length > 0
    tick()
  })
  const tick = () => list.querySelectorAll('[data-expires]').forEach(clock => {
    clock.textContent = t('approvals.left', { time: countdown(clock.dataset.expires) })
    clock.classList.toggle('urgent', new Date(clock.dataset.expires) - Date.now() < 30_000)
  })
  const timer = setInterval(tick, 1000)
  page.signal.addEventListener('abort', () => clearInterval(timer))
  live.addEventListener('approvals', again, { signal: page.signal })
}

function questionCard(page, question, answered) {
  const titleID = uniqueID('question')
  const reasonID = uniqueID('reason')
  const reason = h('input', { id: reasonID, maxlength: 160, autocomplete: 'off' })
  const trouble = h('div', { role: 'alert' })
  const buttons = h('div', { class: 'answers' })
  const give = answer => async () => {
    for (const button of buttons.querySelectorAll('button')) button.disabled = true
    try {
      await post(`approvals/${segment(question.id)}`, { answer, reason: reason.value || undefined })
      put(buttons, badge('answer', answer))
    } catch (error) {
      put(trouble, problem(error))
      for (const button of buttons.querySelectorAll('button')) button.disabled = false
    }
    answered()
  }
  put(buttons,
    may(page.session, 'approver') && h('div', { class: 'field' }, h('label', { for: reasonID }, t('approvals.reason')), reason),
    guarded(page.session, 'approver',
      h('button', { type: 'button', onclick: give('no') }, t('approvals.refuse')),
      h('button', { type: 'button', class: 'primary', onclick: give('yes') }, t('approvals.allow'))))
  return h('section', { class: 'card question', 'aria-labelledby': titleID },
    h('header', {},
      h('h2', { id: titleID }, question.title || question.tool, ' ', code(question.tool)),
      h('span', { class: 'clock', 'data-expires': question.expires })),
    listing(question.text, t('approvals.question')),
    facts([
      [t('column.rule'), question.rule], [t('column.frontend'), term('frontend', question.caller.frontend)],
      [t('approvals.remember'), question.remember && t('approvals.remembered', { time: question.remember })],
      [t('approvals.approvers'), [...(question.approvers?.users ?? []), ...(question.approvers?.groups ?? []).map((name) => t('approvals.group', { name }))].join(', ')],
    ]),
    question.may || !may(page.session, 'approver') ? buttons : h('p', { class: 'notice' }, question.why), trouble)
}

// Pending approvals.
import { answered } from '../answered.js'
import { h, put } from '../dom.js'
import { t } from '../language.js'
import { head } from '../parts.js'
import { questionCard } from '../question.js'
import { live } from '../server.js'

/** away is the time after which answered cards fold once the pointer has left, in ms. On touch screens it leaves after each touch. */
const away = 2000

/**
 * The view never moves a waiting card under the pointer: an answered card keeps its place and height until the pointer has left the list, new ones
 * come below, and a button that has just moved ignores presses.
 */
export default function approvals(page) {
  const list = h('div', { class: 'questions' })
  const empty = h('p', { class: 'empty', hidden: true }, t('approvals.empty'))
  const rest = h('p', { class: 'hint', hidden: true })
  put(page.root, head(t('nav.approvals')), h('p', { class: 'hint' }, t('approvals.about')), list, rest, empty, answered(page))
  const cards = new Map()
  let [wanted] = page.path // the question that a link leads to
  const over = new Set()
  const again = page.poll(10_000, async () => {
    const { items, more = 0 } = await page.get('approvals')
    page.waiting(items.length + more)
    const ids = new Set(items.map(question => question.id))
    const ended = [...cards].filter(([id]) => !ids.has(id) && !over.has(id))
    for (const [id, card] of ended) {
      over.add(id)
      card.end()
    }
    for (const question of items) {
      if (cards.has(question.id)) continue
      cards.set(question.id, questionCard(page, question, () => again()))
      list.append(cards.get(question.id).element)
    }
    empty.hidden = items.length > 0
    if (wanted && cards.has(wanted)) {
      cards.get(wanted).element.scrollIntoView({ block: 'center' })
      wanted = undefined
    }
    rest.hidden = more === 0
    rest.textContent = t('approvals.more', { n: more })
    foldLater()
    tick()
  })
  const tick = () => {
    for (const card of cards.values()) card.tick()
  }
  const timer = setInterval(tick, 250)
  page.signal.addEventListener('abort', () => clearInterval(timer))
  live.addEventListener('approvals', again, { signal: page.signal })

  let pointerInside = false
  let folding
  const foldLater = () => {
    clearTimeout(folding)
    if (pointerInside) return
    folding = setTimeout(() => {
      for (const card of cards.values()) card.fold()
    }, away)
  }
  const pointer = inside => () => {
    pointerInside = inside
    foldLater()
  }
  list.addEventListener('pointerenter', pointer(true))
  list.addEventListener('pointermove', pointer(true))
  list.addEventListener('pointerdown', pointer(true))
  list.addEventListener('pointerleave', pointer(false))
}

// The time span of charts and figures: the last hour, day or week. It applies to all of them while the page is open, and is in the address.
import { h, put } from './dom.js'
import { t } from './language.js'

const names = ['hour', 'day', 'week']
const recent = 5_000
const long = 60_000

let chosen = names[0]

/**
 * spanned calls work with the chosen span at intervals, and at once when it changes. work resolves to the figures, which may be those of one replica.
 * It returns the control for the head of a view.
 */
export function spanned(page, work) {
  let due = 0
  if (names.includes(page.query.get('span'))) chosen = page.query.get('span')
  const note = () => page.note('span', chosen === names[0] ? '' : chosen)
  note()
  const whose = h('small')
  const select = h('select', { 'aria-label': t('span.label'), onchange: () => {
    chosen = select.value
    note()
    due = 0
    again()
  } }, names.map(name => h('option', { value: name, selected: name === chosen }, t(`span.${name}`))))
  const again = page.poll(recent, async () => {
    if (Date.now() < due) return
    const span = chosen
    const { replica } = await work(span) ?? {}
    put(whose, replica && t('span.replica', { replica }))
    // Figures from the store have large steps.
    if (span === chosen) due = Date.now() + (span === names[0] ? 0 : long - recent)
  })
  return h('span', { class: 'span' }, select, whose)
}

// Failures by tool and cause, and what to do about them.
import { showDialog } from '../dialog.js'
import { h, put } from '../dom.js'
import { filters, has } from '../filters.js'
import { moment, number, t, term, who } from '../language.js'
import { badge, code, facts, head, since, when, why } from '../parts.js'
import { table } from '../table.js'

const sides = ['tool', 'plugin', 'limit', 'caller', 'policy', 'host']

export default function errors(page) {
  let answer = { items: [] }
  const about = h('p', { class: 'hint' })
  const narrow = filters(page, () => show())
  const text = narrow.search(t('errors.filter'))
  const side = narrow.choice('side', t('errors.side'), { '': t('errors.all'), ...Object.fromEntries(sides.map(value => [value, term('side', value)])) })
  const list = table({
    caption: t('nav.errors'), rowKey: row => JSON.stringify([row.tool, row.outcome, row.detail]), open: showFailure, empty: t('errors.empty'), page, narrow,
    columns: [
      { label: t('column.tool'), by: 'tool', cell: row => code(row.tool || '–') },
      { label: t('errors.what'), class: 'grow', cell: what },
      { label: t('errors.count'), by: 'count', down: true, class: 'number', cell: row => number(row.count) },
      { label: t('errors.last'), by: 'last', down: true, class: 'nowrap wide', cell: row => since(row.last) },
      { label: t('errors.first'), by: 'first', down: true, class: 'nowrap wide', cell: row => when(row.first) },
      { label: t('errors.example'), class: 'wide', cell: row => example(row) },
    ],
  })
  const show = () => {
    list.update(answer.items.filter(row => (!side.value || row.side === side.value) && has(text.value, row.tool, row.plugin, row.outcome, row.text, row.error, row.detail)))
    put(about, answer.since && t('errors.about', { since: moment(answer.since) }), answer.replica && ` ${t('calls.replica', { replica: answer.replica })}`)
  }
  put(page.root, head(t('nav.errors')), about, h('div', { class: 'tools' }, text, side), list.element)
  page.poll(5000, async () => {
    answer = await page.get('errors')
    show()
  })
}

function what(row) {
  return [
    h('span', { class: `badge ${tone(row.side)}` }, term('side', row.side)), ' ', h('span', {}, row.text), row.detail && h('small', {}, `${t('errors.detail')}: ${row.detail}`),
    row.error && h('small', { class: 'clamped' }, row.error), h('small', {}, row.remedy, ' ', explained(row)),
  ]
}

/** explained links to the reason of a refusal. */
function explained({ outcome, tool, example }) {
  return outcome === 'not_allowed' && why({ name: tool, outcome, who: example })
}

/** tone is bad for failures that somebody has to repair, and neutral for tool errors and denials. */
function tone(side) {
  return { plugin: 'bad', host: 'bad', limit: 'warn' }[side] ?? 'plain'
}

function example({ example }) {
  return example.id && h('a', { href: `#/calls/${encodeURIComponent(example.id)}` }, t('errors.open'))
}

function showFailure(row) {
  showDialog({
    title: row.tool || term('outcome', row.outcome), side: true,
    body: [
      h('p', {}, h('span', { class: `badge ${tone(row.side)}` }, term('side', row.side)), ' ', badge('outcome', row.outcome)),
      h('p', {}, row.text), row.error && h('p', {}, code(row.error)),
      h('p', { class: 'notice' }, row.remedy, ' ', explained(row)),
      facts([
        [t('errors.count'), number(row.count)], [t('errors.first'), when(row.first)], [t('errors.last'), when(row.last)],
        [t('column.plugin'), row.plugin], [t('errors.detail'), row.detail], [t('column.who'), who(row.example)], [t('column.frontend'), row.example.frontend && term('frontend', row.example.frontend)],
      ]),
      h('p', {}, example(row)),
      row.tool && h('p', {}, h('a', { href: `#/tools/${encodeURIComponent(row.tool)}` }, t('calls.tool')), ' · ',
        h('a', { href: `#/audit?tool=${encodeURIComponent(row.tool)}&outcome=${row.outcome}` }, t('calls.audit'))),
    ],
  })
}

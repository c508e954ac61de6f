// Calls that failed, and what to do about it.
import { showDialog } from '../dialog.js'
import { h, put } from '../dom.js'
import { t, term, who } from '../language.js'
import { badge, code, facts, head, took, when } from '../parts.js'
import { table } from '../table.js'

export default function errors(page) {
  const list = table({
    caption: t('nav.errors'), rowKey: row => row.id, open: showFailure, empty: t('errors.empty'),
    columns: [
      { label: t('column.time'), class: 'nowrap', cell: row => when(row.time) },
      { label: t('column.tool'), class: 'wide', cell: row => code(row.tool || '–') },
      { label: t('column.outcome'), class: 'wide', cell: row => badge('outcome', row.outcome) },
      { label: t('errors.what'), class: 'grow', cell: what },
      { label: t('column.who'), class: 'wide', cell: row => who(row) },
    ],
  })
  put(page.root, head(t('nav.errors')), h('p', { class: 'hint' }, t('errors.about')), list.element)
  page.poll(5000, async () => list.update((await page.get('errors')).items))
}

function what(row) {
  return [
    h('span', { class: 'narrow' }, code(row.tool || '–'), ' ', badge('outcome', row.outcome)),
    h('span', {}, row.text), row.remedy && h('small', {}, row.remedy),
  ]
}

function showFailure(row) {
  showDialog({
    title: row.tool || term('outcome', row.outcome), side: true,
    body: [
      h('p', {}, row.text),
      row.remedy && h('p', { class: 'notice' }, row.remedy),
      facts([
        [t('column.time'), when(row.time)], [t('column.outcome'), badge('outcome', row.outcome)], [t('column.took'), took(row.durationMs)],
        [t('column.plugin'), row.plugin], [t('column.who'), who(row)], [t('column.frontend'), row.frontend && term('frontend', row.frontend)],
        [t('column.rule'), row.rule], [t('column.trace'), row.traceId && code(row.traceId)],
      ]),
      row.tool && h('p', {}, h('a', { href: `#/tools/${encodeURIComponent(row.tool)}` }, t('calls.tool')), ' ',
        h('a', { href: `#/audit?tool=${encodeURIComponent(row.tool)}&outcome=${row.outcome}` }, t('calls.audit'))),
    ],
  })
}

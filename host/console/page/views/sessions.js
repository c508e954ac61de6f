// Who uses hako now: the people who are signed in here.
import { h, put } from '../dom.js'
import { ago, t, term } from '../language.js'
import { card, code, head, may, problem } from '../parts.js'
import { table } from '../table.js'

export default function sessions(page) {
  const people = peopleTable()
  const admin = may(page.session, 'admin')
  put(page.root, head(t('nav.sessions')), admin ? card(t('sessions.people'), people.element) : problem({ role: 'admin' }))
  if (admin) page.poll(10_000, async () => people.update((await page.get('sessions')).items))
}

function peopleTable() {
  return table({
    caption: t('sessions.people'), rowKey: row => `${row.user}/${row.created}/${row.address}`, empty: '–',
    columns: [
      { label: t('column.who'), cell: row => [row.user, ' ', row.self && h('span', { class: 'badge plain' }, t('sessions.you'))] },
      { label: t('column.role'), cell: row => term('role', row.role) },
      { label: t('column.via'), class: 'wide', cell: row => term('via', row.via) },
      { label: t('column.address'), class: 'wide', cell: row => code(row.address ?? '') },
      { label: t('column.seen'), class: 'nowrap', cell: row => ago(row.seen) },
    ],
  })
}

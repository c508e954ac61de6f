// Who uses hako now: connected MCP clients, and the people who are signed in here.
import { decide } from '../dialog.js'
import { h, put } from '../dom.js'
import { number, t, term, who } from '../language.js'
import { card, code, facts, head, may, since, when } from '../parts.js'
import { post, segment } from '../server.js'
import { table } from '../table.js'

export default function sessions(page) {
  const admin = may(page.session, 'admin')
  const note = h('p', { class: 'hint' }, t('sessions.about'))
  const clients = clientTable(admin && (row => end(row, again)))
  const people = peopleTable()
  put(page.root, head(t('nav.sessions')), card(t('sessions.clients'), note, clients.element), admin && card(t('sessions.people'), people.element))
  const again = page.poll(10_000, async () => {
    const [connected, signedIn] = await Promise.all([page.get('clients'), admin ? page.get('sessions') : { items: [] }])
    put(note, t('sessions.about'), connected.replica && ` ${t('sessions.replica', { replica: connected.replica })}`)
    clients.update(connected.items)
    people.update(signedIn.items)
  })
}

/** clientTable lists MCP clients; end asks for the end of one, if the reader may. */
function clientTable(end) {
  return table({
    caption: t('sessions.clients'), rowKey: row => `${row.id}/${row.since}`, empty: t('sessions.noClients'),
    columns: [
      { label: t('column.client'), cell: row => [h('strong', {}, row.client || t('sessions.unnamed')), ' ', row.version,
        h('small', {}, term('frontend', row.frontend), ' ', row.protocol), (row.user || row.token) && h('small', { class: 'narrow' }, who(row))] },
      { label: t('column.who'), class: 'wide', cell: row => [row.user || row.token ? who(row) : '–', h('small', {}, row.address)] },
      { label: t('column.since'), class: 'wide nowrap', cell: row => row.since ? when(row.since) : '–' },
      { label: t('column.used'), class: 'nowrap', cell: row => row.used ? when(row.used) : '–' },
      { label: t('column.calls'), class: 'number wide', cell: row => figure(row, row.calls) },
      { label: t('column.running'), class: 'number wide', cell: row => figure(row, row.requests) },
      { label: t('column.streams'), class: 'number wide', cell: row => figure(row, row.streams) },
      end && { label: h('span', { class: 'unseen' }, t('sessions.end')), class: 'nowrap', cell: row => row.id && h('button', { type: 'button', class: 'small', onclick: () => end(row) }, t('sessions.end')) },
    ].filter(Boolean),
  })
}

/** figure is one of the server's process, which knows nothing of the sessions that only others have served. */
function figure(row, n) {
  return row.here ? number(n) : '–'
}

function end(row, again) {
  decide({
    title: t('sessions.endTitle'), label: t('sessions.end'), danger: true,
    body: [h('p', {}, t('sessions.endAbout')), facts([
      [t('column.client'), `${row.client || t('sessions.unnamed')} ${row.version}`], [t('column.who'), who(row)], [t('column.address'), row.address && code(row.address)],
      [t('column.since'), row.since && when(row.since)], [t('column.running'), row.requests && number(row.requests)],
    ])],
    async act() {
      await post(`clients/${segment(row.id)}/end`)
      again()
    },
  })
}

function peopleTable() {
  return table({
    caption: t('sessions.people'), rowKey: row => `${row.user}/${row.created}/${row.address}`, empty: '–',
    columns: [
      { label: t('column.who'), cell: row => [row.user, ' ', row.self && h('span', { class: 'badge plain' }, t('sessions.you'))] },
      { label: t('column.role'), cell: row => term('role', row.role) },
      { label: t('column.via'), class: 'wide', cell: row => term('via', row.via) },
      { label: t('column.address'), class: 'wide', cell: row => code(row.address ?? '') },
      { label: t('column.seen'), class: 'nowrap', cell: row => since(row.seen) },
    ],
  })
}
